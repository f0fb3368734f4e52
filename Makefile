# The commands of this book. `make book` and `make test` need python3 (3.11 or newer) with its venv
# module, git and make; everything else they install into .venv here.
#
#   make book         build the pages from the stored outputs, print the address of the first one
#   make pdf          build the pages and print them into one PDF, with a Chromium
#   make slides       make slides of the lessons for a course, print the address of their first page
#   make test         everything that can be tested without a GPU
#   make live         open the chapters in JupyterLab
#   make gpu          with a CUDA device: test on it, write most records, run the chapters
#   make assignments  make the students' versions of the assignments
#   make publish      write all that students get, and no solution, into a folder: TO=FOLDER
#   make grade        grade what lies in exercises/submitted
#   make lock         renew requirements*.txt from requirements*.in (needs uv)
#   make clean        remove what was built; `make distclean` removes the environments too

PYTHON = python3
RUN = .venv/bin/python

.PHONY: book pages pdf slides test live gpu assignments publish grade lock clean distclean

book: pages
	@echo "The book: file://$(CURDIR)/_build/html/index.html"

# Warnings are errors; --all, or a page that did not change would keep its warnings to itself.
pages: .venv/made
	.venv/bin/jupyter-book build . --all -q -W --keep-going -n

pdf: pages
	$(RUN) tools/pdf.py

slides: .venv/made
	$(RUN) tools/slides.py

# It makes the environments too, and begins with the one that is there first.
test:
	@sh tools/check_python.sh $(PYTHON)
	$(PYTHON) tools/test_all.py

live: .venv/made
	.venv/bin/jupyter lab chapters

# The first line stops a machine without a device from storing outputs without measurements.
gpu: .venv/made
	$(RUN) -c "from dgbook.gpu import device; print(device('cuda'))"
	$(RUN) -m pytest tests/gpu -n 4 --ignore tests/gpu/test_gpu_basics.py
	$(RUN) -m pytest tests/gpu/test_gpu_basics.py  # it takes times: alone
	$(RUN) -m dgbook bench machine
	$(RUN) -m dgbook bench linear
	$(RUN) -m dgbook bench linear plans --orders 3..4 --dtypes float32
	$(RUN) -m dgbook bench linear numbering --dim 3 --orders 1..3 --dtypes float32
	$(RUN) -m dgbook tune maxwell
	$(RUN) -m dgbook bench maxwell stage bases table2
	$(RUN) -m dgbook bench maxwell ladder levers --dofs 16000000
	$(RUN) -m dgbook bench maxwell sooner --dofs 2000000
	$(RUN) -m dgbook bench maxwell factored --orders 2..7
	$(RUN) -m dgbook bench maxwell variants --dtypes float32 --dofs 30000000
	$(RUN) -m dgbook bench maxwell scattering --orders 4 --dtypes float32
	$(RUN) -m dgbook bench maxwell plans --dtypes float32 --dofs 8000000
	$(RUN) -m dgbook bench maxwell sizes --orders 2..7 --dtypes float32
	$(RUN) -m dgbook tune euler
	$(RUN) -m dgbook bench euler stage blocks sizes kernels counters figure2
	$(RUN) -m dgbook bench euler levers --orders 1..4
	$(RUN) -m dgbook bench euler large --dtypes float32
	$(RUN) -m dgbook bench euler vortex --dtypes float64
	$(RUN) -m dgbook tune acoustics
	$(RUN) -m dgbook bench acoustics stage
	$(RUN) -m dgbook bench acoustics parts error --dtypes float32
	$(RUN) -m dgbook bench hdg product tables sizes cores solve
	$(RUN) -m dgbook bench swept launch step cores division
	$(RUN) -m dgbook bench parallel split
	$(RUN) tools/execute.py chapters/[0-9]*.ipynb

assignments: .venv/made
	$(RUN) tools/assignments.py release

publish: .venv/made
	$(RUN) tools/assignments.py publish $(TO)

grade: .venv/made
	$(RUN) tools/assignments.py grade

.venv/made: requirements.txt pyproject.toml
	sh tools/check_python.sh $(PYTHON)
	$(PYTHON) -m venv .venv
	$(RUN) -m pip install -q --no-compile --disable-pip-version-check --require-hashes -r requirements.txt
	$(RUN) -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# The second lane of the tests: the versions that Colab has.
.venv-colab/made: requirements-colab.txt
	sh tools/colab_lane.sh $(PYTHON)

# Extras stay, since pip takes a package with an extra for another one, which then has no hash.
LOCKED = --python-version 3.11 --generate-hashes --no-strip-extras
lock:
	uv pip compile --universal $(LOCKED) requirements.in -o requirements.txt
	uv pip compile $(LOCKED) requirements-colab.in -o requirements-colab.txt

clean:
	rm -rf _build .pytest_cache .ruff_cache exercises/release exercises/autograded exercises/feedback exercises/graded
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv .venv-colab dgbook.egg-info
