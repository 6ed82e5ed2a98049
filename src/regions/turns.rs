//! The executions of a region that MPI calls mark. A program that does not say where an execution begins and ends still reads its
//! choices, and makes MPI calls; where it does so in a loop, an execution is one turn of it: from one read of a choice to the next
//! read of the same one, if MPI calls came between. A read that no call has come before since the last one belongs to that one's turn.
//!
//! So the choices of a turn are those that were read in it, whatever it did with them and wherever in the loop that was. One variable,
//! the one that was read first, tells the turns: with any other one, choices would change between the reads of one turn.
//!
//! Which calls a turn makes, and how many, does not matter: that may be what the program chooses, and then the costs of different calls
//! are what is to be compared. Knows no MPI and no clock.

/// Tells the turns of one region in one thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns {
    /// The variable whose reads tell the turns, and the thread's number of calls at its latest one.
    leader: Option<(u16, u64)>,
}

/// What a read of a choice means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// The present execution goes on.
    GoesOn,
    /// The first execution begins.
    Begins,
    /// An execution ends, and the next one begins.
    Turns,
}

impl Turns {
    /// A variable's choice is read in a thread that has made so many calls.
    #[inline]
    pub(super) fn read(&mut self, variable: u16, calls: u64) -> Read {
        let read = match self.leader {
            None => Read::Begins,
            Some((leader, before)) if leader == variable && before != calls => Read::Turns,
            Some(_) => return Read::GoesOn,
        };
        self.leader = Some((variable, calls));
        read
    }

    /// Another thread goes on with the region.
    pub(super) fn start_over(&mut self) {
        self.leader = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program does: it reads the choice of a variable, or makes calls.
    #[derive(Clone, Copy)]
    enum Act {
        Reads(u16),
        Calls(u64),
    }
    use Act::{Calls, Reads};

    /// How many executions end.
    fn turns(acts: &[Act]) -> usize {
        let (mut turns, mut made) = (Turns::default(), 0);
        let mut ended = 0;
        for act in acts {
            match *act {
                Calls(calls) => made += calls,
                Reads(variable) => ended += usize::from(turns.read(variable, made) == Read::Turns),
            }
        }
        ended
    }

    #[test]
    fn an_execution_is_a_turn_of_a_loop_with_calls() {
        assert_eq!(turns(&[Reads(0), Calls(4)].repeat(4)), 3);
        // Read in the midst of the loop's calls.
        assert_eq!(turns(&[Calls(1), Reads(0), Calls(3)].repeat(4)), 3);
    }

    #[test]
    fn reads_without_a_call_between_them_are_of_one_execution() {
        assert_eq!(turns(&[Reads(0); 100]), 0);
        let twice = [Reads(0), Reads(0), Calls(2), Reads(1), Reads(1)];
        assert_eq!(turns(&twice.repeat(3)), 2);
    }

    #[test]
    fn reads_at_two_places_of_a_loop_make_two_executions() {
        let two = [Reads(0), Calls(1), Reads(0), Calls(5)];
        assert_eq!(turns(&two.repeat(3)), 5);
    }

    #[test]
    fn one_variable_tells_the_turns() {
        let inner = [Calls(1), Reads(1)].repeat(3);
        let outer = [&[Reads(0)][..], &inner].concat();
        assert_eq!(turns(&outer.repeat(3)), 2);
        // Whichever was read first.
        assert_eq!(turns(&inner), 2);
    }

    #[test]
    fn calls_alone_or_one_read_alone_make_no_execution() {
        assert_eq!(turns(&[Calls(1000)]), 0);
        assert_eq!(turns(&[Calls(3), Reads(0), Calls(1000)]), 0);
    }

    #[test]
    fn another_thread_begins_anew() {
        let mut turns = Turns::default();
        assert_eq!(turns.read(0, 10), Read::Begins);
        turns.start_over();
        assert_eq!(turns.read(1, 99), Read::Begins);
        assert_eq!(turns.read(0, 101), Read::GoesOn);
        assert_eq!(turns.read(1, 101), Read::Turns);
    }
}
