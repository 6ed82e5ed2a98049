//! One thread's session: its sites, its engine, and its operations in progress. Threads share nothing but the
//! reading of each other's buffers in use, so calls need no lock.

use crate::clock::Ticks;
use crate::log::{self, Level};
use crate::messages::{self, Datatypes, Message};
use crate::modules::{self, Module};
use crate::ranges::{Active, Board, NOBODY, Owner, Ranges, Span, Spans};
use crate::stubs::Slot;
use crate::{direct, life, tls, ucx};
use copytune_core::calls::{Binding, Completion, Data, Finish, Role};
use copytune_core::engine::{Engine, NodeInfo, Notice};
use copytune_core::flow::{IntervalId, MAX_NODES, NodeId};
use copytune_core::site::{self, Key, Signature, Sites};
use copytune_core::state;
use copytune_core::tuner::Phase;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::path::Path;

/// What remains to be done after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// A nested call, or copytune is off.
    Nothing,
    /// The outermost call: forget that it was there.
    Reset,
    /// The same, and look at what it has done.
    Work,
}

/// Most requests of one Wait or Test call that are looked at.
const MOST_REQUESTS: i64 = 4096;

/// One thread's session.
pub struct Session {
    /// Calls, intervals, choices.
    pub engine: Engine,
    /// Reads from other processes.
    pub reader: direct::Reader,
    sites: Sites,
    /// By node: what identifies its site across runs.
    pub signatures: Vec<Signature>,
    /// Path and build of the modules that hold sites.
    builds: Vec<(String, String)>,
    /// In the order of the threads' first calls.
    pub number: u32,
    datatypes: Datatypes,
    ranges: Ranges,
    active: Active,
    present: Present,
    /// Whether UCX's copies were closed for a rest.
    dozed: bool,
    /// Whether a living thread has it.
    owned: AtomicBool,
    /// Whether the owner thread is inside `enter` or `leave`.
    busy: AtomicBool,
}

/// What `leave` must know of the call that `enter` saw.
#[derive(Debug, Clone, Copy)]
struct Present {
    owner: Owner,
    spans: Spans,
    bytes: u64,
    chain: u32,
}

/// The node of calls made by the MPI library itself, which are not followed.
const IGNORED: NodeId = NodeId::MAX;

/// The node of calls from sites beyond the table's bound: the tracker takes it as a gap.
const UNTRACKED: NodeId = MAX_NODES as NodeId;

const MOST_SESSIONS: usize = 256;
static SESSIONS: [AtomicPtr<Session>; MOST_SESSIONS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST_SESSIONS];
static BOARDS: [AtomicPtr<Board>; MOST_SESSIONS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST_SESSIONS];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Key whose destructor gives an ending thread's session to the next thread; `u32::MAX` where there is none.
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// Makes sure that sessions come back from threads that end. To be called once, before the first session.
pub fn prepare() {
    let mut key = 0;
    // SAFETY: pthread_key_create(3) writes a key to a live variable; the destructor lives as long as the library, which
    // is never unloaded.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(give_back)) } == 0 {
        KEY.store(key, Ordering::Release);
    }
}

/// A thread ends.
unsafe extern "C" fn give_back(session: *mut c_void) {
    let thread = tls::thread();
    // SAFETY: the thread's own words, still there while its destructors run; the session is never freed.
    unsafe {
        (*thread).session = core::ptr::null_mut();
        (*session.cast::<Session>())
            .owned
            .store(false, Ordering::Release);
    }
}

/// A session for the calling thread: one that an ended thread has left, with all that it knows, or a new one. Null when
/// there are too many threads.
pub fn create() -> *mut Session {
    let session = all()
        .find(|&session| {
            // SAFETY: sessions are never freed; `owned` is atomic.
            let owned = unsafe { &(*session).owned };
            owned
                .compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        })
        .inspect(|&session| {
            // SAFETY: it has just become this thread's, and nobody else's.
            unsafe { (*session).engine.lose_track() }
        })
        .unwrap_or_else(new_session);
    let key = KEY.load(Ordering::Acquire);
    if !session.is_null() && key != u32::MAX {
        // SAFETY: pthread_setspecific(3) with a key that was created and never deleted.
        unsafe { libc::pthread_setspecific(key, session.cast()) };
    }
    session
}

fn new_session() -> *mut Session {
    let Some((engine, library)) = life::new_engine() else {
        return core::ptr::null_mut();
    };
    let place = COUNT.fetch_add(1, Ordering::Relaxed);
    let Some(slot) = SESSIONS.get(place) else {
        COUNT.store(MOST_SESSIONS, Ordering::Relaxed);
        return core::ptr::null_mut();
    };
    let board: &'static Board = Box::leak(Box::default());
    let session = Box::into_raw(Box::new(Session {
        engine,
        reader: direct::Reader::default(),
        sites: Sites::default(),
        signatures: Vec::new(),
        builds: Vec::new(),
        number: place as u32,
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
        dozed: false,
        owned: AtomicBool::new(true),
        busy: AtomicBool::new(false),
    }));
    if let Some(slot) = BOARDS.get(place) {
        slot.store(core::ptr::from_ref(board).cast_mut(), Ordering::Release);
    }
    slot.store(session, Ordering::Release);
    session
}

/// The boards of all threads.
fn boards() -> impl Iterator<Item = &'static Board> {
    BOARDS
        .iter()
        .take(COUNT.load(Ordering::Acquire).min(MOST_SESSIONS))
        // SAFETY: null or a board that was leaked when its session was made; boards hold atomics only.
        .filter_map(|slot| unsafe { slot.load(Ordering::Acquire).as_ref() })
}

/// Every session made so far.
fn all() -> impl Iterator<Item = *mut Session> {
    SESSIONS
        .iter()
        .take(COUNT.load(Ordering::Acquire).min(MOST_SESSIONS))
        .map(|slot| slot.load(Ordering::Acquire))
        .filter(|session| !session.is_null())
}

/// The calling thread's session counts what passed unseen: the run ends.
pub fn count_unseen() {
    let thread = tls::thread();
    // SAFETY: this thread's own words and session, to which no other reference is held: the hooks are not running.
    let own = unsafe { (*thread).session.as_mut().map(|s| (s, (*thread).rest)) };
    if let Some((session, rest)) = own {
        session.engine.count_unseen(rest);
    }
}

/// Shows each session whose thread is not inside copytune to `visit`. Copytune must be off already, so that no
/// thread enters any more.
pub fn for_each(mut visit: impl FnMut(&Session)) {
    for session in all() {
        // SAFETY: sessions are never freed; `busy` is atomic.
        let busy = unsafe { &(*session).busy };
        for _ in 0..1_000_000 {
            if !busy.load(Ordering::SeqCst) {
                break;
            }
            core::hint::spin_loop();
        }
        if !busy.load(Ordering::SeqCst) {
            // SAFETY: its thread is not inside `enter` or `leave`, and cannot get there, because copytune is off.
            visit(unsafe { &*session });
        }
    }
}

impl Session {
    /// Before a call. Returns what copies inside it are to be matched with (null: nothing), and what is to follow.
    #[inline(always)]
    pub fn enter(
        &mut self,
        slot: &'static Slot,
        from: usize,
        arguments: &[usize],
    ) -> (*mut Active, After) {
        if self.dozed {
            self.dozed = false;
            ucx::open();
        }
        let shared = life::is_threaded();
        if shared {
            self.busy.swap(true, Ordering::SeqCst);
            if !life::is_on() {
                self.busy.store(false, Ordering::Release);
                return (core::ptr::null_mut(), After::Reset);
            }
        }
        let result = self.follow(slot, from, arguments);
        if shared {
            self.busy.store(false, Ordering::Release);
        }
        result
    }

    /// How many calls may pass unseen from here on. UCX gets its inline copies back for that time, unless other
    /// threads still need them through memcpy.
    #[inline(always)]
    pub fn rest(&mut self) -> usize {
        match self.engine.take_rest() {
            0 => 0,
            rest => self.doze(rest),
        }
    }

    #[cold]
    fn doze(&mut self, rest: usize) -> usize {
        if direct::is_forced() {
            // Reads are made directly in calls that are seen.
            return 0;
        }
        if ucx::is_open() {
            if life::is_threaded() {
                return 0;
            }
            ucx::close();
            self.dozed = true;
        }
        rest
    }

    #[inline(always)]
    fn follow(
        &mut self,
        slot: &'static Slot,
        from: usize,
        arguments: &[usize],
    ) -> (*mut Active, After) {
        let role = slot.call.role;
        let (mut sent, mut received) = (Message::default(), Message::default());
        let mut after = After::Reset;
        let bytes = match role {
            Role::Transfer { send, receive, .. } => {
                if let Some(data) = send {
                    sent = self.datatypes.message(data, slot.binding, arguments);
                }
                if let Some(data) = receive {
                    received = self.datatypes.message(data, slot.binding, arguments);
                }
                sent.bytes + received.bytes
            }
            Role::Collective(Some(data)) => {
                self.datatypes.message(data, slot.binding, arguments).bytes
            }
            Role::Start | Role::StartAll => self.persistent_bytes(slot, arguments),
            Role::Finish(_) | Role::Forget => {
                if !self.ranges.is_empty() {
                    after = self.before_finish(slot, arguments);
                }
                0
            }
            Role::TypeFree => {
                messages::datatype_freed();
                0
            }
            Role::Collective(None) | Role::Node | Role::Init | Role::Finalize | Role::Abort => 0,
        };
        let Some(node) = self.node(slot, from, bytes) else {
            return (self.matched(false), after);
        };
        if let Some(notice) = self.engine.step(node, &mut Ticks) {
            self.attend(notice);
        }
        if let Some(interval) = self.engine.take_news() {
            self.tell(interval);
        }
        let Some(state) = self.engine.node(node) else {
            return (self.matched(false), after);
        };
        let owner = Owner {
            node,
            routine: state.routine,
        };
        let matters = state.observe || state.routine.is_some();
        match role {
            Role::Transfer {
                send,
                receive,
                completion,
            } => {
                // Where the messages lie matters only for copies that are counted or made by another routine, and for
                // buffers that are sent directly.
                let mut spans = Spans::default();
                let promotes = sent.bytes > 0 && direct::is_asked();
                if matters || promotes || matches!(completion, Completion::Persistent(_)) {
                    let mut span = |message, data: Option<Data>| {
                        data.map_or(Span::default(), |data| {
                            self.datatypes.span(message, data, slot.binding, arguments)
                        })
                    };
                    spans.send = span(sent, send);
                    spans.receive = span(received, receive);
                }
                if promotes {
                    direct::sending(spans.send.start, spans.send.end, sent.bytes);
                }
                let follows = match completion {
                    Completion::Blocking => false,
                    Completion::Request(_) => matters && bytes > 0,
                    Completion::Persistent(_) => true,
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
                let now = !matches!(completion, Completion::Persistent(_)) && matters;
                self.active.spans = if now { spans } else { Spans::default() };
                self.active.owner = owner;
                (self.matched(now), after)
            }
            Role::Start | Role::StartAll => {
                self.before_start(slot, arguments, owner);
                self.active.spans = Spans::default();
                (self.matched(matters), after)
            }
            _ => {
                self.active.spans = Spans::default();
                (self.matched(false), after)
            }
        }
    }

    /// Writes a decision to the log.
    #[cold]
    fn tell(&self, id: IntervalId) {
        let place = |node: NodeId| {
            let signature = self.signatures.get(node as usize)?;
            Some((
                site::file_name(&signature.module),
                signature.offset,
                &signature.call,
                signature.bytes,
            ))
        };
        let interval = self.engine.interval(id);
        if let Some(tuner) = interval.and_then(|interval| interval.tuner.as_ref())
            && let Some((module, offset, call, bytes)) = self
                .engine
                .tracker()
                .nodes(id)
                .first()
                .and_then(|&node| place(node))
        {
            let phase = tuner.phase();
            match tuner
                .outcome()
                .filter(|_| matches!(phase, Phase::Adopted | Phase::Rejected))
            {
                Some(outcome) => log::say(
                    Level::Debug,
                    format_args!(
                        "interval at {module}+{offset:#x} ({call}, {bytes} bytes): {phase:?} ({:?}, gain {:?})",
                        outcome.finding,
                        outcome.gain.map(|gain| gain.estimate)
                    ),
                ),
                None => log::say(
                    Level::Debug,
                    format_args!(
                        "interval at {module}+{offset:#x} ({call}, {bytes} bytes): {phase:?}"
                    ),
                ),
            }
        }
    }

    /// What the copies of the present call are matched with, null where none can matter.
    #[inline]
    fn matched(&mut self, own: bool) -> *mut Active {
        if own || !self.ranges.is_idle() || ucx::is_open() || life::is_threaded() {
            &raw mut self.active
        } else {
            core::ptr::null_mut()
        }
    }

    /// After a call for which `enter` answered [`After::Work`].
    pub fn leave(&mut self, slot: &'static Slot, arguments: &[usize]) {
        match slot.call.role {
            Role::Transfer { completion, .. } => {
                let (position, persistent) = match completion {
                    Completion::Request(position) => (position, false),
                    Completion::Persistent(position) => (position, true),
                    Completion::Blocking => return,
                };
                let address = word(arguments, position);
                let Some(request) = self.request(slot.binding, address, 0) else {
                    return;
                };
                let Present {
                    owner,
                    spans,
                    bytes,
                    ..
                } = self.present;
                self.ranges.insert(request, spans, owner, bytes, persistent);
            }
            Role::Finish(finish) => self.after_finish(finish, slot.binding, arguments),
            _ => {}
        }
    }

    /// Whose copy it is that goes from `source` to `target`.
    #[inline]
    pub fn owner(&self, target: usize, source: usize) -> Owner {
        let Active { spans, owner } = self.active;
        if spans.send.holds(source) || spans.receive.holds(target) {
            return owner;
        }
        if let Some(owner) = self.ranges.owner(target, source) {
            return owner;
        }
        if life::is_threaded() {
            for board in boards() {
                if let Some(owner) = board.owner(target, source) {
                    // Its node is the other thread's: only the routine can be used.
                    return Owner {
                        node: NOBODY,
                        ..owner
                    };
                }
            }
        }
        Owner::NONE
    }

    /// The node of a call, made at first sight; `None` for calls that are not followed.
    #[inline]
    fn node(&mut self, slot: &'static Slot, from: usize, bytes: u64) -> Option<NodeId> {
        let key = Key {
            from,
            call: u32::from(slot.id) << 3 | slot.binding as u32,
            bytes,
        };
        let node = match self.sites.find(key) {
            Some(node) => node,
            None => self.new_site(slot, key),
        };
        (node != IGNORED).then_some(node)
    }

    #[cold]
    #[inline(never)]
    fn new_site(&mut self, slot: &'static Slot, key: Key) -> NodeId {
        if self.sites.is_full() {
            return UNTRACKED;
        }
        let node = modules::containing(key.from)
            .filter(|module| !modules::is_mpi(&module.path))
            .map(|module| Signature {
                offset: key.from.wrapping_sub(module.base) as u64,
                build: self.build(&module),
                module: module.path,
                call: slot.name.to_str().unwrap_or(slot.call.name).into(),
                bytes: key.bytes,
            })
            .map_or(IGNORED, |signature| self.new_node(slot, signature));
        self.sites.insert(key, node);
        node
    }

    /// The node with this signature; at a thread's first call, those of its recorded flowgraph are made.
    fn new_node(&mut self, slot: &'static Slot, signature: Signature) -> NodeId {
        let identity = signature.identity();
        if self.signatures.is_empty() {
            if let Some(recorded) = self.engine.take_up(identity) {
                let nodes = recorded.nodes.iter();
                self.signatures = nodes.map(|(_, signature)| signature.clone()).collect();
            } else if self.engine.has_other_recordings() {
                life::misfit(1, 1);
            }
        }
        if let Some(node) = self.engine.find_node(identity) {
            return node;
        }
        let info = NodeInfo {
            tunable: matches!(
                slot.call.role,
                Role::Transfer { .. } | Role::Start | Role::StartAll
            ),
            bytes: signature.bytes,
            identity,
        };
        self.signatures.push(signature);
        self.engine.add_node(info)
    }

    #[cold]
    #[inline(never)]
    fn attend(&mut self, notice: Notice) {
        match notice {
            Notice::Checkpoint => life::checkpoint(self),
            Notice::Misfit { calls, misfits } => life::misfit(calls, misfits),
        }
    }

    /// What identifies the module's file, as [`state::build_identity`] writes it; a file without a build id is read once.
    fn build(&mut self, module: &Module) -> String {
        if let Some((_, build)) = self.builds.iter().find(|(path, _)| *path == module.path) {
            return build.clone();
        }
        let build = match module.build_id.as_str() {
            "" => state::build_identity(Path::new(&module.path)).unwrap_or_default(),
            id => id.to_string(),
        };
        self.builds.push((module.path.clone(), build.clone()));
        build
    }

    /// The request handle in entry `index` of the array at `address`.
    fn request(&self, binding: Binding, address: usize, index: usize) -> Option<u64> {
        if address == 0 {
            return None;
        }
        let size = if binding.is_fortran() {
            4
        } else {
            self.datatypes.request_size()
        };
        let entry = address.wrapping_add(index * size);
        // SAFETY: the program passes an array of at least index + 1 requests of that size to this very call:
        // pointers or ints by library in C, INTEGERs or derived types of one INTEGER in Fortran.
        Some(unsafe {
            if size == 4 {
                u64::from(*(entry as *const u32))
            } else {
                *(entry as *const u64)
            }
        })
    }

    /// Shows each request of a Start, Wait or Test call to `visit`, with its position.
    fn requests(
        &mut self,
        slot: &Slot,
        arguments: &[usize],
        mut visit: impl FnMut(&mut Self, u64, u32),
    ) {
        let (count, address) = match slot.call.role {
            Role::Start | Role::Forget | Role::Finish(Finish::Wait | Finish::Test) => {
                (1, word(arguments, 0))
            }
            _ => (
                messages::integer(arguments, 0, slot.binding),
                word(arguments, 1),
            ),
        };
        for index in 0..count.clamp(0, MOST_REQUESTS) as usize {
            if let Some(request) = self.request(slot.binding, address, index) {
                visit(self, request, index as u32);
            }
        }
    }

    fn persistent_bytes(&mut self, slot: &Slot, arguments: &[usize]) -> u64 {
        let mut bytes = 0;
        self.requests(slot, arguments, |session, request, _| {
            bytes += session.ranges.bytes(request)
        });
        bytes
    }

    fn before_start(&mut self, slot: &Slot, arguments: &[usize], owner: Owner) {
        self.requests(slot, arguments, |session, request, _| {
            if let Some((span, bytes)) = session.ranges.sends(request)
                && direct::is_asked()
            {
                direct::sending(span.start, span.end, bytes);
            }
            session.ranges.activate(request, owner)
        });
    }

    /// Chains the operations that a Wait or Test call concerns, or forgets that of a Cancel or Request_free.
    fn before_finish(&mut self, slot: &Slot, arguments: &[usize]) -> After {
        if slot.call.role == Role::Forget {
            self.requests(slot, arguments, |session, request, _| {
                session.ranges.remove(request)
            });
            return After::Reset;
        }
        let mut chain = 0;
        self.requests(slot, arguments, |session, request, position| {
            chain = session.ranges.chain(request, position, chain);
        });
        self.present.chain = chain;
        if chain == 0 {
            After::Reset
        } else {
            After::Work
        }
    }

    /// Ends the chained operations that the call has completed: those whose request has become another value (the
    /// null handle), and of persistent ones those that the call's results name.
    fn after_finish(&mut self, finish: Finish, binding: Binding, arguments: &[usize]) {
        let address = match finish {
            Finish::Wait | Finish::Test => word(arguments, 0),
            _ => word(arguments, 1),
        };
        let mut chain = self.present.chain;
        // A request that is given twice makes the chain a ring: the count ends it.
        for _ in 0..MOST_REQUESTS {
            let Some((request, position, persistent, rest)) = self.ranges.link(chain) else {
                break;
            };
            chain = rest;
            let done = if persistent {
                persistent_done(finish, binding, arguments, position)
            } else {
                self.request(binding, address, position as usize) != Some(request)
            };
            if done {
                self.ranges.complete(request);
            }
        }
        self.present.chain = 0;
    }
}

/// Whether the results of a Wait or Test call say that the persistent request at `position` is complete.
fn persistent_done(finish: Finish, binding: Binding, arguments: &[usize], position: u32) -> bool {
    // Fortran counts from 1.
    let wanted = position as i32 + i32::from(binding.is_fortran());
    let result = |argument: u8, index: usize| {
        let address = word(arguments, argument) as *const i32;
        // SAFETY: a result argument that the completed call has just written: an int, a LOGICAL of 4 bytes, or an
        // array of as many of them as the call has said.
        (!address.is_null()).then(|| unsafe { *address.add(index) })
    };
    match finish {
        Finish::Wait | Finish::WaitAll => true,
        Finish::Test => result(1, 0).is_some_and(|flag| flag != 0),
        Finish::TestAll => result(2, 0).is_some_and(|flag| flag != 0),
        Finish::Any => result(2, 0) == Some(wanted),
        Finish::Some => {
            let count = result(2, 0).unwrap_or(0).clamp(0, MOST_REQUESTS as i32);
            (0..count as usize).any(|index| result(3, index) == Some(wanted))
        }
    }
}

fn word(arguments: &[usize], position: u8) -> usize {
    arguments.get(usize::from(position)).copied().unwrap_or(0)
}
