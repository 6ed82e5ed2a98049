//! Sends that the MPI library makes inside its other calls: of a collective's own memory, of what it passes on, of a nonblocking
//! collective's parts. No argument of an MPI call names them, so the library's calls of the functions that begin a send come here
//! first (see `bindings`). Their buffers are promoted where peers ask for them, as those of the program's sends are; they have no notice.
//!
//! Until such a send ends nobody may write its buffer: it is the library's own, or the program has left it to a call that lasts (MPI 4.0,
//! 3.7.2 and 6.12). What only prepares a send does not count: Open MPI's MPI_Send_init calls the same function.

use crate::direct::sender::promotion;
use crate::direct::transparency::bindings::Others;
use crate::sys::{phase, resolve};
use copytune_protocol::requests::MIN_DIRECT_BYTES;
use core::arch::naked_asm;
use core::ffi::{CStr, c_void};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicUsize};

/// Bytes of one element of a datatype of the MPI library, if the elements of several leave no gap.
pub type PackedBytes = fn(usize) -> Option<usize>;

/// The hooks, for [`crate::direct::transparency::bindings`].
pub const HOOKS: Others = Others {
    hook,
    is_led: || {},
};

/// A function that begins a send, by the one definition of it that is loaded.
#[repr(C)]
struct Function {
    /// The first, for the hooks.
    next: AtomicPtr<u8>,
    name: &'static CStr,
}

impl Function {
    const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            next: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    fn find(&self) {
        let found = resolve::only(self.name).map_or(0, |code| code.start);
        self.next.store(found as *mut u8, Release);
    }

    #[inline(always)]
    fn next(&self) -> *mut u8 {
        self.next.load(Relaxed)
    }
}

/// `ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h, const void *buffer, size_t count, ucp_tag_t, const ucp_request_param_t *)` of UCX.
static UCX: Function = Function::new(c"ucp_tag_send_nbx");
/// The same, which ends when the message is being received.
static UCX_SYNCHRONOUS: Function = Function::new(c"ucp_tag_send_sync_nbx");
/// `ucs_status_ptr_t ucp_tag_send_nb(ucp_ep_h, const void *buffer, size_t count, ucp_datatype_t, ucp_tag_t, ucp_send_callback_t)`.
static UCX_OLD: Function = Function::new(c"ucp_tag_send_nb");
/// `int32_t opal_convertor_prepare_for_send(opal_convertor_t *, const opal_datatype_t *, size_t count, const void *buffer)` of Open MPI,
/// by which each send begins (opal/datatype/opal_convertor.h).
static OPEN_MPI: Function = Function::new(c"opal_convertor_prepare_for_send");

/// The functions of Open MPI's ob1 that begin sends, and where their code lies.
static SENDING: [(&CStr, AtomicUsize, AtomicUsize); 2] = [
    (
        c"mca_pml_ob1_isend",
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    ),
    (
        c"mca_pml_ob1_send",
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    ),
];

/// A [`PackedBytes`].
static PACKED_BYTES: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Finds the next implementations, before anything is promoted. `packed_bytes`: of a datatype that the library is using.
pub fn find_next(packed_bytes: PackedBytes) {
    PACKED_BYTES.store(packed_bytes as *mut c_void, Release);
    for function in [&UCX, &UCX_SYNCHRONOUS, &UCX_OLD] {
        function.find();
    }
    let mut is_found = false;
    for (name, start, end) in &SENDING {
        if let Some(code) = resolve::only(name) {
            start.store(code.start, Relaxed);
            end.store(code.end, Relaxed);
            is_found = true;
        }
    }
    if is_found {
        OPEN_MPI.find();
    }
}

/// What stands for a function that begins sends, and what it goes on to.
fn hook(name: &[u8]) -> Option<(*const (), usize)> {
    let (function, hook) = match name {
        b"ucp_tag_send_nbx" => (&UCX, ucp_tag_send_nbx as *const ()),
        b"ucp_tag_send_sync_nbx" => (&UCX_SYNCHRONOUS, ucp_tag_send_sync_nbx as *const ()),
        b"ucp_tag_send_nb" => (&UCX_OLD, ucp_tag_send_nb as *const ()),
        b"opal_convertor_prepare_for_send" => {
            (&OPEN_MPI, opal_convertor_prepare_for_send as *const ())
        }
        _ => return None,
    };
    let next = function.next.load(Acquire);
    (!next.is_null()).then_some((hook, next as usize))
}

/// What [`UCX`] is told beside its arguments: the fields up to the one that is read here (ucp/api/ucp.h; later versions add some behind).
#[repr(C)]
struct Parameters {
    given: u32,
    _flags: u32,
    _request: *const c_void,
    _callback: *const c_void,
    datatype: u64,
}

/// The bit of [`Parameters::given`] that says that there is a datatype.
const HAS_DATATYPE: u32 = 1 << 3;
/// The lowest bits of a datatype of UCX, 0 where its elements follow one another without a gap; above them lies their length.
const KIND_BITS: u32 = 3;

/// Goes on to the next function, unless the message may be long: short ones pay these two instructions. The third argument is a count.
macro_rules! hook {
    ($hook:ident $next:ident $look:ident $from:literal) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $hook() {
            naked_asm!(
                "cmp rdx, {fewest}",
                "jae 2f",
                "jmp qword ptr [rip + {next}]",
                "2:",
                $from,
                "jmp {look}",
                fewest = const FEWEST,
                next = sym $next,
                look = sym $look,
            )
        }
    };
}

hook!(ucp_tag_send_nbx UCX send_by_ucx "");
hook!(ucp_tag_send_sync_nbx UCX_SYNCHRONOUS send_synchronously_by_ucx "");
hook!(ucp_tag_send_nb UCX_OLD send_by_old_ucx "");
// The return address becomes an argument.
hook!(opal_convertor_prepare_for_send OPEN_MPI prepare_for_send "mov r8, qword ptr [rsp]");

unsafe extern "C" fn send_by_ucx(
    endpoint: *const c_void,
    buffer: usize,
    count: usize,
    tag: u64,
    parameters: *const Parameters,
) -> *const c_void {
    // SAFETY: only called in place of the next function, with its arguments (`hook`).
    unsafe { send_by(&UCX, endpoint, (buffer, count), tag, parameters) }
}

unsafe extern "C" fn send_synchronously_by_ucx(
    endpoint: *const c_void,
    buffer: usize,
    count: usize,
    tag: u64,
    parameters: *const Parameters,
) -> *const c_void {
    // SAFETY: as above.
    unsafe { send_by(&UCX_SYNCHRONOUS, endpoint, (buffer, count), tag, parameters) }
}

/// # Safety
/// The arguments are those of UCX's function, which is known.
#[inline(always)]
unsafe fn send_by(
    function: &Function,
    endpoint: *const c_void,
    (buffer, count): (usize, usize),
    tag: u64,
    parameters: *const Parameters,
) -> *const c_void {
    type Send =
        unsafe extern "C" fn(*const c_void, usize, usize, u64, *const Parameters) -> *const c_void;
    // SAFETY: UCX is given a live structure, and reads the datatype under the same condition.
    let datatype = unsafe {
        match (*parameters).given & HAS_DATATYPE {
            0 => 1 << KIND_BITS,
            _ => (*parameters).datatype,
        }
    };
    look(buffer, count, datatype);
    // SAFETY: as the caller promises.
    unsafe {
        let next: Send = core::mem::transmute(function.next());
        next(endpoint, buffer, count, tag, parameters)
    }
}

unsafe extern "C" fn send_by_old_ucx(
    endpoint: *const c_void,
    buffer: usize,
    count: usize,
    datatype: u64,
    tag: u64,
    callback: *const c_void,
) -> *const c_void {
    type Send =
        unsafe extern "C" fn(*const c_void, usize, usize, u64, u64, *const c_void) -> *const c_void;
    look(buffer, count, datatype);
    // SAFETY: as above.
    unsafe {
        let next: Send = core::mem::transmute(UCX_OLD.next());
        next(endpoint, buffer, count, datatype, tag, callback)
    }
}

/// A send of so many elements of a datatype of UCX begins.
#[inline(always)]
fn look(buffer: usize, count: usize, datatype: u64) {
    let bytes = count.saturating_mul((datatype >> KIND_BITS) as usize);
    if datatype & ((1 << KIND_BITS) - 1) == 0 && promotion::is_inner_send_watched(bytes) {
        offer(buffer, bytes);
    }
}

unsafe extern "C" fn prepare_for_send(
    convertor: *const c_void,
    datatype: usize,
    count: usize,
    buffer: usize,
    from: usize,
) -> i32 {
    type Prepare = unsafe extern "C" fn(*const c_void, usize, usize, usize) -> i32;
    if promotion::is_inner_send_watched(count.saturating_mul(LONGEST_ELEMENT)) {
        look_at_open_mpi(datatype, count, buffer, from);
    }
    // SAFETY: as above.
    unsafe {
        let next: Prepare = core::mem::transmute(OPEN_MPI.next());
        next(convertor, datatype, count, buffer)
    }
}

/// Fewer elements are never looked at. Longer ones are rare here: MPI libraries give UCX a number of bytes.
const FEWEST: usize = MIN_DIRECT_BYTES / LONGEST_ELEMENT;
/// Bytes of MPI's longest predefined datatype, a complex number of two long doubles.
const LONGEST_ELEMENT: usize = 32;

/// A send of so many elements of a datatype of Open MPI may begin.
#[cold]
#[inline(never)]
extern "C" fn look_at_open_mpi(datatype: usize, count: usize, buffer: usize, from: usize) {
    let begins = SENDING.iter().any(|(_, start, end)| {
        let (start, end) = (start.load(Relaxed), end.load(Relaxed));
        (start..end).contains(&from)
    });
    if !begins {
        return;
    }
    phase::guarded(|| {
        let bytes = count.checked_mul(element_bytes(datatype)?)?;
        promotion::is_inner_send_watched(bytes).then(|| offer(buffer, bytes))
    });
}

/// Asks for [`PACKED_BYTES`], unless the latest answer was about that datatype: it never changes, since what lies outside the modules has
/// none and stays there.
fn element_bytes(datatype: usize) -> Option<usize> {
    /// Above these bits lies the address, of which the uppermost 8 are 0 (x86-64); below, 0 says that there are none.
    const LENGTH_BITS: u32 = 8;
    static LATEST: AtomicUsize = AtomicUsize::new(0);
    let known = |latest: usize| Some(latest % (1 << LENGTH_BITS)).filter(|&bytes| bytes > 0);
    let latest = LATEST.load(Relaxed);
    if latest >> LENGTH_BITS == datatype {
        return known(latest);
    }
    // SAFETY: null or a `PackedBytes` (`find_next`).
    let packed_bytes = unsafe {
        let address = PACKED_BYTES.load(Acquire);
        core::mem::transmute::<*mut c_void, Option<PackedBytes>>(address)
    };
    let bytes = packed_bytes?(datatype).filter(|&bytes| bytes <= LONGEST_ELEMENT);
    let latest = datatype << LENGTH_BITS | bytes.unwrap_or(0);
    LATEST.store(latest, Relaxed);
    known(latest)
}

/// The library begins to send so many bytes.
#[cold]
#[inline(never)]
fn offer(buffer: usize, bytes: usize) {
    // SAFETY: errno is the calling thread's own; the library must not find it changed.
    let errno = unsafe { *libc::__errno_location() };
    if let Some(end) = buffer.checked_add(bytes) {
        phase::guarded(|| promotion::sending_inside(buffer, end));
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
