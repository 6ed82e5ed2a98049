//! Statistics: knows numbers and nothing else.
