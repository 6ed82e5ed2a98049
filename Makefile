# The commands for a newcomer. Cargo does the building; this adds the set-up and the order.

.PHONY: help build demo test clean

help:
	@echo 'make demo    install what is missing, build, tune a NAS benchmark on 4 ranks, show what was learnt'
	@echo 'make test    install what is missing, build, run all tests'
	@echo 'make build   target/release/libcopytune.so and target/release/copytune; needs Rust and gcc alone'
	@echo 'make clean   remove what was built'

build:
	cargo build --release

demo:
	.ci/deps demo
	cargo build --release
	$(MAKE) -C nas-bench cg CLASS=A MPI=openmpi
	.ci/demo

# The build comes first: `cargo test` builds the command, but not the preload library of another package.
test:
	.ci/deps test
	cargo build --release
	cargo test --release

clean:
	cargo clean
	rm -rf build
	if [ -f nas-bench/Makefile ]; then $(MAKE) -C nas-bench clean; fi
