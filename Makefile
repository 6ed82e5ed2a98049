# The commands for a newcomer. Cargo does the building; this adds the set-up and the order.

.PHONY: help build demo flowgraphs test shipped tested test-repeat install uninstall dist clean

# Where `make install` puts all: below $(DESTDIR)$(PREFIX), the library in $(LIB) there.
PREFIX ?= /usr/local
LIB ?= lib

built := $(abspath $(or $(CARGO_TARGET_DIR),target))

help:
	@echo 'make demo          install what is missing, build, tune NAS CG and a ping-pong, show what was learnt'
	@echo 'make test          install what is missing, build, run all tests'
	@echo 'make test-repeat   all tests, three times on two idle cores and three times on two busy ones'
	@echo 'make build         target/release/libcopytune.so and target/release/copytune; needs Rust and gcc alone'
	@echo 'make flowgraphs    draw the flowgraphs of docs/workloads.md'
	@echo 'make install       build, install below PREFIX ($(PREFIX)); make uninstall removes it again'
	@echo 'make dist          build, write the Debian package and the Python wheel to build/dist'
	@echo 'make clean         remove what was built'

build:
	cargo build --release

demo:
	.ci/deps demo
	cargo build --release
	$(MAKE) -C nas-bench cg bandwidth CLASS=A MPI=openmpi
	.ci/demo

flowgraphs:
	cargo build --release
	$(MAKE) -C nas-bench workloads MPI=openmpi
	.ci/flowgraphs

# The tests of whole programs take a build without link-time optimisation, in which they can plant faults; one looks at the release
# build, which must not let them. The test binaries themselves come with the checks of the dev profile. They leave a quarter of the cores' time
# idle (vmstat(8)), so one test more than there are cores runs at a time.
test:
	.ci/deps test
	$(MAKE) -j 2 shipped tested
	COPYTUNE_TEST_BUILD=$(built)/checked COPYTUNE_TEST_SHIPPED=$(built)/release RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$$(($$(nproc) + 1))} cargo test

# Side by side: link-time optimisation, which takes minutes, runs on one core.
shipped:
	cargo build --release
tested:
	cargo build --profile checked --features copytune-preload/test-switches
	cargo test --no-run

# Hours. `.ci/repeat ROUNDS --test NAME` takes less.
test-repeat:
	.ci/deps test
	.ci/repeat

install:
	cargo build --release
	DESTDIR=$(DESTDIR) packaging/install $(built)/release $(PREFIX) $(LIB)

uninstall:
	DESTDIR=$(DESTDIR) UNINSTALL=1 packaging/install $(built)/release $(PREFIX) $(LIB)

# What is in them, and when two builds give the same bytes: docs/packages.md.
dist:
	cargo build --release
	packaging/deb $(built)/release build/dist
	python3 packaging/wheel/build.py $(built)/release build/dist

clean:
	cargo clean
	rm -rf build
	if [ -f nas-bench/Makefile ]; then $(MAKE) -C nas-bench clean; fi
