//! Direct copies (tests/programs/direct_access.c): who gets at a process's shared pages, and that nobody else's files are touched.

mod common;

use common::direct::exact;

const PROGRAM: &str = "direct_access.c";

#[test]
fn whoever_may_only_look_gets_nothing() {
    exact(PROGRAM, &["looked_at"], 1);
}

#[test]
fn another_user_gets_nothing() {
    exact(PROGRAM, &["stranger"], 1);
}

#[test]
fn a_child_keeps_nothing() {
    exact(PROGRAM, &["child_alone"], 1);
}

#[test]
fn files_of_the_program_are_its_own() {
    exact(PROGRAM, &["descriptors"], 100);
}
