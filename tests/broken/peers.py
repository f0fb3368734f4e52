"""Wrong kernels that write into the memory of peers, in CUDA C++."""

from mistakes import CudaMistake as Mistake

STORE = [
    Mistake("each message has the first one's numbers", "there[j]", "there[j - first]"),
    Mistake("a message begins where it does here", "to[i - first]", "to[i]"),
    Mistake("only one buffer is written to", "round % BUFFERS", "0"),
    Mistake("the flag is that of the round before", '"r"(round + 1)', '"r"(round)'),
]
AWAIT_PEERS = [
    Mistake("nobody waits", "(int)(sent - next) < 0", "false"),
    Mistake("rounds are not counted", "*rounds = next;", ";"),
]
FETCH = [Mistake("the other buffer is read", "(*rounds - 1) %", "*rounds %")]
