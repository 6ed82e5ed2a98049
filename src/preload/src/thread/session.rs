//! One thread's session: its sites, its engine, and its operations in progress. Threads share nothing but the
//! reading of each other's buffers in use, so calls need no lock.

use crate::direct;
use crate::mpi::arguments::Arguments;
use crate::mpi::entry_points::{EntryPoint, Reading};
use crate::mpi::library::Library;
use crate::mpi::messages::{self, Datatypes, Message};
use crate::mpi::span::{Span, Spans, both};
use crate::sys::clock::Ticks;
use crate::sys::phase;
use crate::sys::planted::{self, Part};
use crate::thread::job::Job;
use crate::thread::operations::{Active, Board, Owner, Ranges};
use crate::thread::predictor::{Meaning, Predictor};
use crate::thread::sites::{Callers, IGNORED, Place};
use copytune_core::direct::one_way::OneWay;
use copytune_core::engine::Engine;
use copytune_core::flow::NodeId;
use copytune_core::mpi::call_site::{Key, Signature, Sites};
use copytune_core::mpi::calls::{Completion, Role};
use copytune_core::routines::CopyFn;
use copytune_core::routines::copy_sites::CopySites;
use core::sync::atomic::{AtomicBool, Ordering};

/// One thread's session.
pub struct Session {
    /// What is known of the process.
    pub(super) job: &'static Job,
    /// Calls, intervals, choices.
    pub engine: Engine,
    /// Reads from other processes.
    pub reader: direct::Reader,
    pub(super) sites: Sites,
    predictor: Predictor,
    /// By node: what identifies its site across runs.
    pub signatures: Vec<Signature>,
    /// What copies tell by themselves. Never freed.
    pub copy_sites: &'static CopySites,
    /// The modules that hold sites.
    pub(super) modules: Callers,
    /// In the order of the threads' first calls.
    pub number: u32,
    pub(super) datatypes: Datatypes,
    pub(super) ranges: Ranges,
    pub(super) active: Active,
    pub(super) present: Present,
    /// Whether the thread is dormant from the present call on: the operation that it begins is not followed. (After a call that begins
    /// none, it may be the first one after that period.)
    pub(super) falls: bool,
    /// Whether UCX has its inline copies back because nothing is to be learnt.
    pub(super) has_closed_ucx: bool,
    /// The notice of what the present call sends, and that call's entry point.
    pub shown: Option<(&'static direct::Notice, &'static EntryPoint)>,
    /// The present call, if it may tell the program that sends are over whose notices have outlasted their calls.
    pub(super) ending: Option<&'static EntryPoint>,
    /// Polls that may still come in vain before those notices are hidden.
    pub(super) polls_left: u32,
    /// Dormant calls left, to be resumed when the notice is hidden.
    pub interrupted: usize,
    /// Whether the thread sends without waiting, and reads nothing.
    pub(super) one_way: OneWay,
    /// Calls that were to pass unseen, so far.
    pub(super) unseen: u64,
    /// Whether a living thread owns the session.
    pub owned: AtomicBool,
    /// The owner is inside copytune, and other threads must not look. Told where [`phase::is_threaded`], by all that may free what they
    /// would read.
    pub busy: AtomicBool,
}

/// What remains to be done after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum After {
    /// The outermost call: only forget it.
    Reset,
    /// A nested call, or copytune is off.
    Nothing,
    /// As `Reset`, and examine what the call has done.
    Work,
}

/// The node of a call.
#[derive(Debug, Clone, Copy)]
struct Subject {
    owner: Owner,
    /// Whether its copies must be matched.
    matters: bool,
}

/// What `leave` must know of the call that `enter` saw.
#[derive(Debug, Clone, Copy)]
pub(super) struct Present {
    pub(super) owner: Owner,
    pub(super) spans: Spans,
    pub(super) bytes: u64,
    pub(super) chain: u32,
}

impl Session {
    /// A new session.
    pub fn new(job: &'static Job, library: Library, board: &'static Board, number: u32) -> Self {
        Self {
            job,
            engine: job.new_engine(),
            reader: direct::Reader::default(),
            sites: Sites::default(),
            predictor: Predictor::default(),
            signatures: Vec::new(),
            copy_sites: Box::leak(Box::default()),
            modules: Callers::default(),
            number,
            datatypes: Datatypes::new(library),
            ranges: Ranges::new(board),
            active: Active {
                spans: Spans::default(),
                owner: Owner::NONE,
            },
            present: Present {
                owner: Owner::NONE,
                spans: Spans::default(),
                bytes: 0,
                chain: 0,
            },
            falls: false,
            has_closed_ucx: false,
            shown: None,
            ending: None,
            polls_left: 0,
            interrupted: 0,
            one_way: OneWay::default(),
            unseen: 0,
            owned: AtomicBool::new(true),
            busy: AtomicBool::new(false),
        }
    }

    /// Whether [`Self::pass`] may apply: no execution is timed, no operation is in flight, and copies are not noted.
    #[inline(always)]
    pub fn is_quiet(&self) -> bool {
        !self.engine.is_timing() && self.ranges.are_none() && !self.copy_sites.are_noted()
    }

    /// The fast path before a call that was predicted, where nothing is to be learnt or changed. `None`: nothing was
    /// done, and the call takes the slow path. Only while [`phase::is_fast_path`] and [`Self::is_quiet`].
    #[inline(always)]
    pub fn pass(&mut self, entry: &'static EntryPoint, arguments: Arguments) -> Option<After> {
        let site = self.predictor.check(entry, arguments)?;
        if !self.engine.pass(site.place().node) {
            return None;
        }
        self.predictor.confirm(site);
        if site.sent() > 0 && direct::is_send_watched(site.sent()) {
            return Some(self.announce(entry, arguments, site.meaning()));
        }
        Some(After::Reset)
    }

    /// Before a call. Returns what its copies are matched with (null: nothing), and what to do after it.
    #[inline(always)]
    pub fn enter(
        &mut self,
        entry: &'static EntryPoint,
        arguments: Arguments,
    ) -> (*mut Active, After) {
        if phase::is_threaded() {
            return self.enter_shared(entry, arguments);
        }
        self.follow(entry, arguments)
    }

    /// The same with MPI_THREAD_MULTIPLE.
    #[inline(never)]
    fn enter_shared(
        &mut self,
        entry: &'static EntryPoint,
        arguments: Arguments,
    ) -> (*mut Active, After) {
        let result = self.while_busy(|it| it.follow(entry, arguments));
        result.unwrap_or((core::ptr::null_mut(), After::Reset))
    }

    /// Runs `part` if copytune is on, while other threads do not look at the session. If it panics, they never do: what it has left is
    /// not to be read.
    pub fn while_busy<T>(&mut self, part: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.busy.swap(true, Ordering::SeqCst);
        let result = phase::is_on().then(|| part(self));
        self.busy.store(false, Ordering::Release);
        result
    }

    /// The same; below MPI_THREAD_MULTIPLE nobody looks.
    #[inline(always)]
    pub fn unseen_by_others<T>(&mut self, part: impl FnOnce(&mut Self) -> T) -> Option<T> {
        match phase::is_threaded() {
            true => self.while_busy(part),
            false => Some(part(self)),
        }
    }

    #[inline(always)]
    fn follow(&mut self, entry: &'static EntryPoint, arguments: Arguments) -> (*mut Active, After) {
        planted::at(Part::Enter);
        // A Wait or Test call needs its operations looked up first.
        if entry.finishes && !self.ranges.are_none() {
            return self.follow_unforeseen(entry, arguments);
        }
        let Some(site) = self.predictor.check(entry, arguments) else {
            return self.follow_unforeseen(entry, arguments);
        };
        self.predictor.confirm(site);
        let Some(subject) = self.step(site.place().node) else {
            return (self.matched(false), After::Reset);
        };
        if subject.matters && entry.is_blocking {
            // The short form of `attribute`, for most calls that matter.
            self.active.spans = spans(entry, arguments, site.reach());
            self.active.owner = subject.owner;
            let after = match site.sent() > 0 && direct::is_send_watched(site.sent()) {
                true => self.announce(entry, arguments, site.meaning()),
                false => After::Reset,
            };
            return (&raw mut self.active, after);
        }
        let Subject { owner, matters } = subject;
        self.attribute_owned(
            entry,
            arguments,
            site.place(),
            owner.node,
            owner.routine,
            matters,
        )
    }

    /// [`Self::attribute`] of a predicted call, with its subject in registers.
    #[inline(never)]
    fn attribute_owned(
        &mut self,
        entry: &'static EntryPoint,
        arguments: Arguments,
        place: Place,
        node: NodeId,
        routine: Option<CopyFn>,
        matters: bool,
    ) -> (*mut Active, After) {
        let subject = Subject {
            owner: Owner { node, routine },
            matters,
        };
        self.attribute(entry, arguments, place, subject, After::Reset)
    }

    #[inline(never)]
    fn follow_unforeseen(
        &mut self,
        entry: &'static EntryPoint,
        arguments: Arguments,
    ) -> (*mut Active, After) {
        let mut after = After::Reset;
        let Some(place) = self.search(entry, arguments, &mut after) else {
            return (self.matched(false), after);
        };
        match self.step(place.node) {
            Some(subject) => self.attribute(entry, arguments, place, subject, after),
            None => (self.matched(false), after),
        }
    }

    /// Steps the engine by a call of this node, which may end and start intervals. Returns how its copies are made
    /// from now on; `None` for a node beyond the engine's bound.
    #[inline(always)]
    fn step(&mut self, node: NodeId) -> Option<Subject> {
        if self.engine.step(node, &mut Ticks) {
            self.attend();
        }
        if self.has_closed_ucx {
            self.reopen_ucx();
        }
        let state = self.engine.node(node)?;
        Some(Subject {
            owner: Owner {
                node,
                routine: state.routine,
            },
            matters: state.matters() || self.copy_sites.are_noted(),
        })
    }

    /// Finds the site of a call that was not predicted; `None` where it is not followed.
    #[inline(never)]
    fn search(
        &mut self,
        entry: &'static EntryPoint,
        arguments: Arguments,
        after: &mut After,
    ) -> Option<Place> {
        let (mut sent, mut received) = (Message::default(), Message::default());
        let mut message = |data| self.datatypes.message(data, entry.binding, arguments);
        let bytes = match entry.call().role {
            Role::Transfer { send, receive, .. } => {
                sent = send.map(&mut message).unwrap_or_default();
                received = receive.map(&mut message).unwrap_or_default();
                sent.bytes + received.bytes
            }
            Role::Collective { message: data, .. } => data.map(message).unwrap_or_default().bytes,
            Role::Start | Role::StartAll => self.persistent_bytes(entry, arguments),
            Role::Finish(_) | Role::Forget | Role::Inspect => {
                if !self.ranges.are_none() {
                    *after = self.before_finish(entry, arguments);
                }
                0
            }
            Role::TypeFree => {
                messages::datatype_freed();
                0
            }
            Role::Node | Role::Init | Role::Finalize | Role::Abort => 0,
        };
        let key = Key {
            from: arguments.return_address(),
            call: entry.key,
            bytes,
        };
        let (site, node) = match self.sites.find(key) {
            Some(found) => found,
            None => self.other_site(entry, key),
        };
        if node == IGNORED {
            // The engine is not told of it, but it may have ended a send.
            self.unseen = self.unseen.wrapping_add(1);
            return None;
        }
        if site != Place::UNKNOWN {
            let meaning = Meaning {
                bytes,
                sent: match entry.call().role {
                    // How long those are that say it in arrays, or at the root alone, is looked up where it matters.
                    Role::Collective { message: None, .. } if entry.has_sources => u64::MAX,
                    _ if entry.has_sources => bytes.max(1),
                    // It sends nothing before it is started: other threads may write the buffer.
                    Role::Transfer {
                        completion: Completion::Persistent(_),
                        ..
                    } => 0,
                    _ => sent.bytes,
                },
                reach: both([sent, received], |message| self.datatypes.reach(message)),
            };
            let place = Place { node, site };
            let handle_mask = self.datatypes.handle_mask;
            self.predictor
                .learn(place, entry, arguments, handle_mask, meaning);
        }
        Some(Place { node, site })
    }

    /// Attributes the copies of this call's message, where that matters: copies are counted or made by another
    /// routine than the default, buffers are read directly, or an operation begins.
    #[inline(never)]
    fn attribute(
        &mut self,
        entry: &'static EntryPoint,
        arguments: Arguments,
        place: Place,
        subject: Subject,
        mut after: After,
    ) -> (*mut Active, After) {
        let Subject { owner, matters } = subject;
        // Persistent operations are followed even where their copies do not matter.
        let quiet = !matters && entry.words.reading != Reading::Never && !direct::is_on();
        if quiet && self.needs_no_match() {
            return (core::ptr::null_mut(), after);
        }
        self.active.spans = Spans::default();
        match entry.call().role {
            Role::Transfer { completion, .. } => {
                let Some(site) = self.predictor.site(place.site) else {
                    return (self.matched(false), after);
                };
                let Meaning { bytes, sent, reach } = site.meaning();
                let spans = spans(entry, arguments, reach);
                if sent > 0
                    && direct::is_send_watched(sent)
                    && self.send_directly(entry, spans, sent, 0)
                {
                    after = After::Work;
                }
                let (persistent, follows) = match completion {
                    Completion::Blocking => (false, false),
                    Completion::Request(_) => (false, matters && bytes > 0),
                    Completion::Persistent(_) => (true, true),
                };
                if follows {
                    after = After::Work;
                    self.present = Present {
                        owner,
                        spans,
                        bytes,
                        chain: 0,
                    };
                }
                let now = matters && !persistent;
                if now {
                    self.active.spans = spans;
                }
                self.active.owner = owner;
                (self.matched(now), after)
            }
            Role::Start | Role::StartAll => {
                self.before_start(entry, arguments, owner);
                (self.matched(matters), after)
            }
            Role::Collective { .. } if entry.has_sources => {
                if self.offer_sources_on_demand(entry, arguments) {
                    after = After::Work;
                }
                if matters {
                    self.active.spans = Spans::ALL_READS;
                    self.active.owner = owner;
                }
                (self.matched(matters), after)
            }
            _ => (self.matched(false), after),
        }
    }

    /// What the present call's copies are matched with; null where no copy matters.
    #[inline]
    fn matched(&mut self, own: bool) -> *mut Active {
        match !own && self.needs_no_match() {
            true => core::ptr::null_mut(),
            false => &raw mut self.active,
        }
    }

    /// Whether the copies of a call whose own do not matter need not be matched with anything.
    #[inline(always)]
    fn needs_no_match(&self) -> bool {
        self.ranges.is_idle() && phase::is_fast_path() && !self.copy_sites.are_noted()
    }

    /// After a call for which `enter` answered [`After::Work`].
    pub fn leave(&mut self, entry: &'static EntryPoint, arguments: Arguments) {
        self.unseen_by_others(|session| session.look_back(entry, arguments));
    }

    fn look_back(&mut self, entry: &'static EntryPoint, arguments: Arguments) {
        planted::at(Part::Leave);
        let falls = core::mem::take(&mut self.falls);
        match entry.call().role {
            Role::Transfer { completion, .. } => {
                let (position, persistent) = match completion {
                    Completion::Request(position) => (position, false),
                    Completion::Persistent(position) => (position, true),
                    Completion::Blocking => return,
                };
                if falls && !persistent {
                    return;
                }
                let address = arguments.word(position);
                let Some(request) = self.request(entry.binding, address, 0) else {
                    return;
                };
                let Present {
                    owner,
                    spans,
                    bytes,
                    ..
                } = self.present;
                self.ranges.insert(request, spans, owner, bytes, persistent);
                self.engine.follow_operation();
            }
            Role::Finish(finish) => self.after_finish(finish, entry.binding, arguments),
            _ => {}
        }
    }
}

/// The memory of both ends of a call's message.
#[inline(always)]
pub(super) fn spans(entry: &EntryPoint, arguments: Arguments, reach: [Span; 2]) -> Spans {
    let [sent, received] = reach;
    let [send, receive] = both(entry.words.ends, |end| arguments.at(end.buffer));
    if entry.binding.has_descriptors() {
        Spans {
            send: messages::described(sent, send),
            receive: messages::described(received, receive),
        }
    } else {
        Spans {
            send: messages::placed(sent, send),
            receive: messages::placed(received, receive),
        }
    }
}
