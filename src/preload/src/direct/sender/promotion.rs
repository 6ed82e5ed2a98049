//! The sender: during a send, moves the buffer into the arena if peers ask for it, and gives back what the program no
//! longer maps.

mod inside;
mod prepare;
mod reclaim;
mod remade;
mod show;
mod watch;

pub use inside::sending_inside;
pub use prepare::{list_descriptors, prepare, prepare_again};
pub use watch::{
    has_requests, is_inner_send_watched, is_send_watched, may_meet, may_show, update_attention,
};

use crate::direct::sender::devices::Devices;
use crate::direct::sender::eligibility::Ordinary;
use crate::direct::sender::huge_pages;
use crate::direct::sender::moving::{move_chunk, pages_of};
use crate::direct::sender::showing::{self, Until, hide_all, hide_others};
use crate::direct::sender::{inner_sends, progress};
use crate::direct::shared::report::explain;
use crate::direct::shared::returns::{self, TAKEN};
use crate::direct::shared::switches::{is_forced, is_on, keeps_private};
use crate::direct::shared::{headroom, promoted};
use crate::direct::transparency::bindings::{Bindings, Set};
use crate::direct::transparency::fork;
use crate::sys::cancellation::held_back;
use crate::sys::clock;
use crate::sys::log::{self, Level};
use copytune_core::direct::batch::{Batch, Together};
use copytune_core::direct::burst::Burst;
use copytune_protocol::allocator::Space;
use copytune_protocol::arena::{self, Arena};
use copytune_protocol::limits;
use copytune_protocol::notice::{Notice, ends, holds_whole};
use copytune_protocol::notices::Notices;
use copytune_protocol::requests::{MIN_DIRECT_BYTES, Message, NOTHING, Requests};
use copytune_protocol::smaps::Area;
use copytune_protocol::unshown::Unshown;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use remade::Asked;
use std::sync::Mutex;
use watch::{is_asked, note_shown};

/// Bytes that may exist twice while a buffer moves: for so many memory is asked for at a time.
const CHUNK_BYTES: usize = 4 << 20;
/// Sends between two checks whether a promoted range is still mapped.
const SENDS_PER_LOOK: u32 = 64;
/// Promotions between two counts of this process's mappings.
const PROMOTIONS_PER_COUNT: u32 = 16;

/// No shorter message meets what peers still wait for; [`NOTHING`]: they wait for none.
static AWAITED: AtomicUsize = AtomicUsize::new(NOTHING);
static SENDS: AtomicU32 = AtomicU32::new(0);
/// The last [`SENDS_PER_LOOK`] of them that had a look.
static LOOKED: AtomicU32 = AtomicU32::new(0);
/// Where the message begins that a call of the program was the last to offer; 0: the library has begun to send it.
static OFFERED: AtomicUsize = AtomicUsize::new(0);
static UNSHOWN: Unshown = Unshown::new();
/// Whether messages have notices.
static SHOWS: AtomicBool = AtomicBool::new(false);
/// The shortest of them, as far as is known.
static SHORTEST_SHOWN: AtomicUsize = AtomicUsize::new(MIN_DIRECT_BYTES);
/// Sends that are still to be looked at because their buffers are to go back.
static GOING_BACK: AtomicU32 = AtomicU32::new(0);

static OWNER: Mutex<Owner> = Mutex::new(Owner {
    requests: Requests::new(),
    promoted: Vec::new(),
    space: Space::new(),
    next_check: 0,
    checks_from: 0,
    burst: Burst::new(),
    batch: Batch::new(),
    devices: Devices::new(),
    held_by_device: false,
    looked: 0,
    notices: Notices::new(),
    ordinary: Ordinary::new(),
    mappings: 0,
    uncounted: 0,
    bindings: Bindings::new(&[progress::HOOKS, inner_sends::HOOKS]),
    left_behind: 0,
    waited: 0.0,
    latest: (0, 0, 0),
    asked: Asked::new(),
});

struct Owner {
    requests: Requests,
    /// By address.
    promoted: Vec<Promoted>,
    space: Space,
    /// Index of the range to check next.
    next_check: usize,
    /// When the next check may come, in ticks.
    checks_from: u64,
    burst: Burst,
    batch: Batch,
    devices: Devices,
    /// Whether some device may hold memory of this process.
    held_by_device: bool,
    /// When the descriptors were looked at last, in ticks.
    looked: u64,
    notices: Notices,
    ordinary: Ordinary,
    /// Mappings of this process when last counted, plus those added since; promotions until the next count.
    mappings: u64,
    uncounted: u32,
    bindings: Bindings,
    /// Bytes of the arena that stay allocated although nothing maps them here any more.
    left_behind: u64,
    /// Seconds that forks had waited when buffers began to go back.
    waited: f64,
    /// The latest message whose send was to outlast its call, from start to end, and that call's number.
    latest: (usize, usize, u64),
    asked: Asked,
}

/// A promoted range.
#[derive(Clone, Copy)]
struct Promoted {
    start: usize,
    offset: u64,
    bytes: u64,
}

/// A send of `bytes` bytes in `[start, end)` begins. Until it ends, the program leaves the buffer alone (MPI 4.0, 3.4
/// and 3.7.2).
pub fn sending(start: usize, end: usize, bytes: u64, until: Until) -> Option<&'static Notice> {
    let arena = arena::own().filter(|_| is_on() && start < end)?;
    hide_others(start, end);
    // If another thread holds the lock, it does the work.
    let mut owner = OWNER.try_lock().ok()?;
    let tells = owner.tells((start, end), until);
    let message = Message {
        start,
        end,
        is_contiguous: bytes == (end - start) as u64,
        is_followed: match until {
            Until::Return | Until::Exchange => true,
            // Else a notice would save nothing.
            Until::After { .. } | Until::ReturnOfSeveral => {
                (tells || ends(start, end - start) != (0, 0)) && showing::may_last()
            }
            Until::Blocks | Until::Unknown | Until::Inside => false,
        },
        has_blocks: until == Until::Blocks,
        is_inner: false,
    };
    let sends = SENDS.load(Relaxed);
    let looks = LOOKED.load(Relaxed) != sends / SENDS_PER_LOOK;
    let may_meet = end - start >= AWAITED.load(Relaxed)
        && (owner.batch.is_waiting() || owner.requests.touch(start, end));
    if is_asked(arena) || may_meet || GOING_BACK.load(Relaxed) > 0 || looks {
        LOOKED.store(sends / SENDS_PER_LOOK, Relaxed);
        OFFERED.store(start, Relaxed);
        held_back(|| owner.serve(arena, message, until, (sends, looks)));
        update_attention();
    }
    if !SHOWS.load(Relaxed) {
        return None;
    }
    let is_whole = holds_whole(end - start);
    if is_whole {
        owner.look_for_devices();
    }
    // Others had a notice of a shorter message that begins there, or of memory that has gone back since.
    if !message.can_be_shown() || !is_whole && !holds_some_of(&owner.promoted, start, end) {
        note_shown(false);
        return None;
    }
    let shown = show::show(
        &mut owner.notices,
        arena,
        (start, end),
        until,
        (sends, tells),
    );
    note_shown(shown.is_some());
    shown.flatten()
}

/// Hides all notices that have outlasted their sends' calls.
pub fn end_lasting() {
    if showing::take_lasting() {
        match (arena::own(), OWNER.try_lock()) {
            (Some(arena), Ok(mut owner)) => owner.notices.end_lasting(arena),
            // Another thread is at it.
            _ => hide_all(),
        }
    }
}

impl Owner {
    /// Whether the sender finds out where a message lies rather than its receiver (0.3 µs). So it is where the send follows another one at
    /// once, as in a window, and either has the same message, which lies where it did, or the thread has more time.
    fn tells(&mut self, (start, end): (usize, usize), until: Until) -> bool {
        match until {
            Until::Return => true,
            Until::After { call, has_time } => {
                let latest = core::mem::replace(&mut self.latest, (start, end, call));
                let follows = call.wrapping_sub(latest.2) <= 1;
                follows && (has_time || (latest.0, latest.1) == (start, end))
            }
            _ => false,
        }
    }

    #[cold]
    fn serve(
        &mut self,
        arena: &Arena,
        message: Message,
        until: Until,
        (sends, looks): (u32, bool),
    ) {
        let (asked, some_are_lost) =
            (self.requests).collect(arena.words(), TAKEN.load(Relaxed), sends);
        TAKEN.store(asked, Relaxed);
        if looks && !self.promoted.is_empty() {
            self.look_after(arena);
        }
        if !self.promoted.is_empty() {
            self.go_back(arena, message, looks);
        }
        let mut met = self.requests.met_by(message, sends);
        self.asked.look(self.requests.latest());
        if some_are_lost && !met.ranges.is_empty() {
            // Requests were lost because a long message is asked for in many pieces: most likely all of it is wanted.
            met.ranges.push((message.start, message.end));
        }
        let call = match until {
            Until::After { call, .. } => Some(call),
            _ => None,
        };
        let is_wanted = message.is_contiguous && !met.ranges.is_empty();
        if is_wanted && (message.may_gain() || is_forced()) {
            // A part of other messages could not be asked for again by this one's bounds: it does not wait.
            let is_inside =
                |range: &(usize, usize)| message.start <= range.0 && range.1 <= message.end;
            let call = call.filter(|_| met.ranges.iter().all(is_inside));
            let joined = (self.batch).join((message.start, message.end), met.ranges, call);
            self.requests.put_back(joined.left, sends);
            if let Some(together) = joined.now {
                self.promote(arena, &together, (sends, met.has_parts), until);
            }
        } else {
            self.requests.put_back(self.batch.pass(call), sends);
            let (start, end) = (message.start, message.end);
            let is_whole = holds_whole(end - start);
            if met.no_notice && is_whole {
                self.notices.remove(arena, start);
            } else if met.notice && is_whole {
                // A device's memory has addresses, too, at which nothing can be read here.
                if self.has_no_device() {
                    self.give_notice(arena, (start, end), sends);
                }
            } else if met.notice
                && holds_some_of(&self.promoted, start, end)
                && self.give_notice(arena, (start, end), sends)
            {
                arena.words().announce();
            }
        }
        self.await_requests();
    }

    /// Notes which messages may meet a request.
    fn await_requests(&self) {
        let awaited = match self.batch.is_waiting() {
            true => 0,
            false => self.requests.shortest(),
        };
        AWAITED.store(awaited, Relaxed);
    }

    /// Moves the requested whole pages of the messages, where they may be moved.
    fn promote(
        &mut self,
        arena: &Arena,
        together: &Together,
        (sends, has_parts): (u32, bool),
        until: Until,
    ) {
        let spans = together.spans();
        let pages = |&(start, end): &(usize, usize)| pages_of(start, end, together.asked.clone());
        let pages: Vec<(usize, usize)> = spans.iter().flat_map(pages).collect();
        let (Some(&(first, _)), Some(&(_, last))) = (pages.first(), pages.last()) else {
            return;
        };
        if self.held_by_device || keeps_private() {
            return;
        }
        if fork::cost_too_much() {
            explain(
                "this program forks often, and each fork waits for a copy of the promoted buffers",
            );
            return;
        }
        // Done once in a process, so not part of the price.
        match self.bindings.set() {
            Set::Certain => {}
            Set::NotYet => {
                self.requests.put_back(together.asked.clone(), sends);
                return;
            }
            Set::Refused => {
                explain("calls of madvise and mremap cannot be followed");
                return;
            }
        }
        // What costs least comes first: most requests for memory that may not be moved end here. Looks at all memory have a budget of
        // their own, so they are no part of the price, either.
        let Some(areas) = self.ordinary.areas(first, last, self.bindings.misses()) else {
            explain("a look at all memory of this process would take too long");
            return;
        };
        let began = clock::now();
        if !areas.is_empty() {
            // A device may have been opened since.
            let asks = !(self.burst.holds(began, clock::rate()) && self.devices.are_as_many());
            if asks && self.finds_a_device() {
                return;
            }
            // Each piece cut out of a mapping adds two.
            if !self.may_map(arena, 2 * pages.len() as u64) {
                explain("this process has too many mappings");
                return;
            }
            let moved = self.move_pages(arena, &pages, &areas, (began, together.buffers.len()));
            if has_parts {
                returns::count_parts(moved);
            } else if moved > 0 {
                // A long message may be read, and so asked for, in several pieces.
                let lengths = together.asked.iter().map(|&(start, end)| end - start);
                lengths.for_each(returns::count);
            }
            self.burst.end(clock::now(), asks.then_some(began));
        }
        if until != Until::Inside {
            // Of other memory a notice tells nothing: to show it and to look where it lies took 1.5 µs of each message.
            for &buffer in &together.buffers {
                if holds_some_of(&self.promoted, buffer.0, buffer.1) {
                    self.give_notice(arena, buffer, sends);
                }
            }
        }
        arena.words().announce();
    }

    /// Moves those parts of the pages of so many buffers that lie in one of the areas; `began`: when the promotion began. Returns how many
    /// bytes were moved.
    fn move_pages(
        &mut self,
        arena: &Arena,
        pages: &[(usize, usize)],
        areas: &[Area],
        (began, buffers): (u64, usize),
    ) -> usize {
        let (mut ticks, mut bytes) = (0, 0);
        let parts = pages
            .iter()
            .flat_map(|&(start, end)| areas.iter().filter_map(move |area| area.within(start, end)));
        for area in parts {
            let moves = clock::now();
            if let Some(moved) = self.move_in(arena, area) {
                let taken = clock::now().wrapping_sub(moves);
                ticks += taken;
                bytes += moved;
                log::say(
                    Level::Debug,
                    format_args!(
                        "promoted {moved} bytes at {:#x} in {:.3} ms, {:.3} ms after it was begun",
                        area.start,
                        clock::milliseconds(taken),
                        clock::milliseconds(moves.wrapping_sub(began))
                    ),
                );
            }
        }
        let taken = clock::now().wrapping_sub(began);
        if bytes > 0 {
            let nanoseconds = |ticks: u64| 1e6 * clock::milliseconds(ticks);
            let words = arena.words();
            words.note_price(nanoseconds(taken), nanoseconds(ticks), bytes, buffers);
        }
        bytes
    }

    /// Whether this process may have `more` mappings. Counting takes as long as many promotions (0.2 ms for the 450
    /// of a program with Open MPI), so it is done only now and then.
    fn may_map(&mut self, arena: &Arena, more: u64) -> bool {
        if self.uncounted == 0 {
            self.mappings = self.reclaim(arena).unwrap_or(u64::MAX);
            self.uncounted = PROMOTIONS_PER_COUNT;
        }
        self.uncounted -= 1;
        let may = limits::may_map(self.mappings, more);
        self.mappings = self.mappings.saturating_add(more);
        may
    }

    /// Moves one area. Returns how many bytes could be moved.
    fn move_in(&mut self, arena: &Arena, area: Area) -> Option<usize> {
        let bytes = area.end - area.start;
        let offset = self.space.take(arena.capacity, area.start, bytes as u64)?;
        promoted::add(area.start, area.end);
        let before: u64 = self.promoted.iter().map(|range| range.bytes).sum();
        let mut done = 0;
        while done < bytes {
            let length = CHUNK_BYTES.min(bytes - done);
            let promoted = before + done as u64;
            let is_trifle = headroom::is_trifle(promoted + length as u64);
            if !is_trifle && !headroom::is_for(length, promoted) {
                break;
            }
            let (start, offset) = (area.start + done, offset + done as u64);
            // SAFETY: whole pages inside a buffer that is being sent, private and anonymous (eligibility::areas), and
            // pages of the arena that nothing else uses.
            let moved = unsafe { move_chunk(arena, start, length, offset, area.huge) };
            done += moved;
            if moved < length {
                break;
            }
        }
        if done < bytes {
            // Memory that the program has unmapped may still fill the arena: count again next time.
            self.uncounted = 0;
            explain("no memory is to be had for promoted buffers");
            self.give_back(arena, offset + done as u64, (bytes - done) as u64);
        }
        if done == 0 {
            return None;
        }
        let again = self.promoted.iter().any(|range| range.start == area.start);
        self.asked.promoted(done, again);
        let place = (self.promoted).partition_point(|range| range.start < area.start);
        let range = Promoted {
            start: area.start,
            offset,
            bytes: done as u64,
        };
        self.promoted.insert(place, range);
        promoted::set_bytes(before + done as u64);
        if area.huge {
            huge_pages::make_in(area.start, area.start + done);
        }
        Some(done)
    }
}

/// Whether some of `[start, end)` was promoted, of which all is there by address.
fn holds_some_of(promoted: &[Promoted], start: usize, end: usize) -> bool {
    let further = promoted.partition_point(|range| range.start < end);
    let last = promoted.get(..further).and_then(<[Promoted]>::last);
    last.is_some_and(|range| start < range.start + range.bytes as usize)
}
