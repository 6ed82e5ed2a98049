//! Assembles the copy routines under asm/.

fn main() {
    println!("cargo::rerun-if-changed=asm");
}
