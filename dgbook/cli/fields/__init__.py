"""What ParaView gets to see of each family's solutions."""
