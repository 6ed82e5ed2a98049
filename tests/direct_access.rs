//! Direct copies (tests/programs/direct_access.c): who gets at a process's shared pages, that nobody else's files are touched, and what
//! is left of the process's limits.

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
fn what_the_program_has_where_the_signpost_stands_stays() {
    exact(PROGRAM, &["occupied"], 10);
}

#[test]
fn files_of_the_program_are_its_own() {
    exact(PROGRAM, &["descriptors"], 100);
}

#[test]
fn address_space_is_left() {
    exact(PROGRAM, &["space"], 1);
}

#[test]
fn mappings_are_left() {
    exact(PROGRAM, &["mappings"], 1);
}

#[test]
fn threads_share_what_they_need() {
    exact(PROGRAM, &["threads"], 10);
}

#[test]
fn what_a_child_is_to_have_is_not_given_back() {
    exact(PROGRAM, &["reclaimed"], 10);
}

#[test]
fn messages_over_the_end_of_a_segment() {
    exact(PROGRAM, &["over_the_ends"], 50);
}
