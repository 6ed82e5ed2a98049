//! The one table of intercepted MPI calls.
//!
//! Wrappers, exported names, ids and the names in reports all come from [`CALLS`]. The build script of the
//! preload library includes this file by itself, so it may use nothing else of the crate.
//!
//! Argument positions are those of the C binding (MPI 4.0, appendix A.3), from 0. The Fortran bindings have
//! the same positions, each argument by reference, and one more argument, `ierror`.

/// Position of one data buffer's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data {
    /// Position of the buffer's address.
    pub buffer: u8,
    /// Position of the number of elements.
    pub count: u8,
    /// Position of the datatype.
    pub datatype: u8,
}

/// A buffer of a blocking collective out of which the library may send: no other thread may write it while the call lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Its arguments.
    pub data: Data,
    /// How many such messages lie in it.
    pub blocks: Blocks,
    /// Whether MPI_IN_PLACE may stand for it: it is a send buffer, and nobody writes it while the call lasts.
    pub may_be_left_out: bool,
}

/// How many messages lie in a buffer of a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// One.
    One,
    /// One, which only the root sends that it had before, whose rank is at this position; others receive it first.
    OneOfRoot(u8),
    /// One for each rank of the communicator.
    EachRank,
    /// The same at the root, whose rank is at this position; elsewhere the buffer means nothing.
    AtRoot(u8),
    /// One for each rank, of other lengths and at other places: the position of the count is that of an array.
    Counted {
        /// Position of the array that says where they lie, in extents of the datatype.
        displacements: u8,
        /// Position of the root's rank, where the buffer means something at the root alone.
        root: Option<u8>,
    },
}

/// How an operation that a call begins comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// When the call returns.
    Blocking,
    /// By a call of the Wait or Test family on the request at this position.
    Request(u8),
    /// The call only prepares the persistent request at this position; Start begins the operation.
    Persistent(u8),
}

/// What the Wait and Test families wait for, and where they say what has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// One request (position 0), complete on return.
    Wait,
    /// One request (position 0), complete if the flag at position 1 is set.
    Test,
    /// `count` (position 0) requests (position 1), all complete on return.
    WaitAll,
    /// The same, complete if the flag at position 2 is set.
    TestAll,
    /// The same, the one at the index at position 2 complete (and only if a flag at position 3 says so, for Testany).
    Any,
    /// The same, with the number of indices at position 2 and the indices at position 3.
    Some,
}

/// What copytune does at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Point-to-point communication: the call sites that are tuned.
    Transfer {
        /// What it sends.
        send: Option<Data>,
        /// What it receives.
        receive: Option<Data>,
        /// How it ends.
        completion: Completion,
    },
    /// Begins the persistent request at position 0.
    Start,
    /// Begins `count` (position 0) persistent requests (position 1).
    StartAll,
    /// Ends operations.
    Finish(Finish),
    /// Cancel and Request_free: the request at position 0 is no longer followed.
    Forget,
    /// A collective.
    Collective {
        /// Its message, where every rank gives the same one and it cannot be left out (MPI_IN_PLACE makes a count and
        /// datatype insignificant, and then they may be anything); of all ranks' blocks, one.
        message: Option<Data>,
        /// What peers may read while the call lasts, where that is known.
        sources: &'static [Source],
    },
    /// Tells whether operations are over, and leaves their requests.
    Inspect,
    /// Anything else that is a node of the flowgraph: probes, partitioned-communication signals.
    Node,
    /// MPI_Init, MPI_Init_thread (its granted level at position 3 of C, 1 of Fortran) and MPI_Session_init.
    Init,
    /// MPI_Finalize and MPI_Session_finalize.
    Finalize,
    /// MPI_Abort.
    Abort,
    /// A datatype handle dies, so that its number may come back with another meaning.
    TypeFree,
}

/// One MPI function.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// The C name.
    pub name: &'static str,
    /// Number of arguments of the C binding.
    pub arity: u8,
    /// Number of arguments of the Fortran bindings, `ierror` included.
    pub fortran_arity: u8,
    /// What copytune does at it.
    pub role: Role,
    /// Whether MPI 4.0 has a large-count variant (`_c`; `_f08ts_large_` in MPICH's Fortran).
    pub large: bool,
    /// Whether MPI 3.1 does not have it, so that an MPI library of today may lack it.
    pub recent: bool,
}

const fn data(buffer: u8, count: u8, datatype: u8) -> Option<Data> {
    Some(Data {
        buffer,
        count,
        datatype,
    })
}

const fn call(name: &'static str, arity: u8, role: Role, large: bool) -> Call {
    Call {
        name,
        arity,
        fortran_arity: arity + 1,
        role,
        large,
        recent: false,
    }
}

const fn send(name: &'static str, completion: Completion) -> Call {
    let role = Role::Transfer {
        send: data(0, 1, 2),
        receive: None,
        completion,
    };
    let arity = match completion {
        Completion::Blocking => 6,
        _ => 7,
    };
    call(name, arity, role, true)
}

const fn receive(name: &'static str, arity: u8, completion: Completion) -> Call {
    let role = Role::Transfer {
        send: None,
        receive: data(0, 1, 2),
        completion,
    };
    call(name, arity, role, true)
}

const fn exchange(name: &'static str, completion: Completion) -> Call {
    let role = Role::Transfer {
        send: data(0, 1, 2),
        receive: data(5, 6, 7),
        completion,
    };
    call(name, 12, role, true)
}

const fn replace(name: &'static str, completion: Completion) -> Call {
    let role = Role::Transfer {
        send: data(0, 1, 2),
        receive: data(0, 1, 2),
        completion,
    };
    call(name, 9, role, true)
}

const fn finish(name: &'static str, arity: u8, finish: Finish) -> Call {
    call(name, arity, Role::Finish(finish), false)
}

const fn collective(name: &'static str, arity: u8, message: Option<Data>) -> Call {
    spreading(name, arity, message, &[])
}

/// The same with the buffers that peers read.
const fn spreading(
    name: &'static str,
    arity: u8,
    message: Option<Data>,
    sources: &'static [Source],
) -> Call {
    call(name, arity, Role::Collective { message, sources }, true)
}

const fn source(buffer: u8, count: u8, datatype: u8, blocks: Blocks) -> Source {
    Source {
        data: Data {
            buffer,
            count,
            datatype,
        },
        blocks,
        may_be_left_out: false,
    }
}

const fn source_or_in_place(buffer: u8, count: u8, datatype: u8, blocks: Blocks) -> Source {
    Source {
        may_be_left_out: true,
        ..source(buffer, count, datatype, blocks)
    }
}

const fn counted(displacements: u8) -> Blocks {
    Blocks::Counted {
        displacements,
        root: None,
    }
}

const fn counted_at_root(displacements: u8, root: u8) -> Blocks {
    Blocks::Counted {
        displacements,
        root: Some(root),
    }
}

const fn node(name: &'static str, arity: u8) -> Call {
    call(name, arity, Role::Node, false)
}

const fn life(name: &'static str, arity: u8, fortran_arity: u8, role: Role) -> Call {
    Call {
        name,
        arity,
        fortran_arity,
        role,
        large: false,
        recent: false,
    }
}

/// Not in MPI 3.1.
const fn recent(call: Call) -> Call {
    Call {
        recent: true,
        ..call
    }
}

use Blocks::{AtRoot, EachRank, One, OneOfRoot};
use Completion::{Blocking, Persistent, Request};

/// Every intercepted call. The position in this table is the call's id within one build.
pub static CALLS: &[Call] = &[
    send("MPI_Send", Blocking),
    send("MPI_Bsend", Blocking),
    send("MPI_Ssend", Blocking),
    send("MPI_Rsend", Blocking),
    send("MPI_Isend", Request(6)),
    send("MPI_Ibsend", Request(6)),
    send("MPI_Issend", Request(6)),
    send("MPI_Irsend", Request(6)),
    send("MPI_Send_init", Persistent(6)),
    send("MPI_Bsend_init", Persistent(6)),
    send("MPI_Ssend_init", Persistent(6)),
    send("MPI_Rsend_init", Persistent(6)),
    receive("MPI_Recv", 7, Blocking),
    receive("MPI_Irecv", 7, Request(6)),
    receive("MPI_Recv_init", 7, Persistent(6)),
    receive("MPI_Mrecv", 5, Blocking),
    receive("MPI_Imrecv", 5, Request(4)),
    exchange("MPI_Sendrecv", Blocking),
    replace("MPI_Sendrecv_replace", Blocking),
    recent(exchange("MPI_Isendrecv", Request(11))),
    recent(replace("MPI_Isendrecv_replace", Request(8))),
    call("MPI_Start", 1, Role::Start, false),
    call("MPI_Startall", 2, Role::StartAll, false),
    finish("MPI_Wait", 2, Finish::Wait),
    finish("MPI_Waitall", 3, Finish::WaitAll),
    finish("MPI_Waitany", 4, Finish::Any),
    finish("MPI_Waitsome", 5, Finish::Some),
    finish("MPI_Test", 3, Finish::Test),
    finish("MPI_Testall", 4, Finish::TestAll),
    finish("MPI_Testany", 5, Finish::Any),
    finish("MPI_Testsome", 5, Finish::Some),
    call("MPI_Cancel", 1, Role::Forget, false),
    call("MPI_Request_free", 1, Role::Forget, false),
    call("MPI_Request_get_status", 3, Role::Inspect, false),
    // MPI 4.1.
    recent(call("MPI_Request_get_status_all", 4, Role::Inspect, false)),
    recent(call("MPI_Request_get_status_any", 5, Role::Inspect, false)),
    recent(call("MPI_Request_get_status_some", 5, Role::Inspect, false)),
    // MPICH from 4.1 on.
    recent(call("MPIX_Request_is_complete", 1, Role::Inspect, false)),
    node("MPI_Probe", 4),
    node("MPI_Iprobe", 5),
    node("MPI_Mprobe", 5),
    node("MPI_Improbe", 6),
    // Partitioned communication: its transfers are not followed yet, its calls take part in loops.
    recent(node("MPI_Psend_init", 9)),
    recent(node("MPI_Precv_init", 9)),
    recent(node("MPI_Pready", 2)),
    recent(node("MPI_Pready_range", 3)),
    recent(node("MPI_Pready_list", 3)),
    recent(node("MPI_Parrived", 3)),
    collective("MPI_Barrier", 1, None),
    spreading(
        "MPI_Bcast",
        5,
        data(0, 1, 2),
        &[source(0, 1, 2, OneOfRoot(3))],
    ),
    spreading("MPI_Gather", 8, None, &[source_or_in_place(0, 1, 2, One)]),
    spreading("MPI_Gatherv", 9, None, &[source_or_in_place(0, 1, 2, One)]),
    spreading("MPI_Scatter", 8, None, &[source(0, 1, 2, AtRoot(6))]),
    spreading(
        "MPI_Scatterv",
        9,
        None,
        &[source(0, 1, 3, counted_at_root(2, 7))],
    ),
    // Its blocks are passed on from where they are received.
    spreading(
        "MPI_Allgather",
        7,
        data(3, 4, 5),
        &[source_or_in_place(0, 1, 2, One), source(3, 4, 5, EachRank)],
    ),
    spreading(
        "MPI_Allgatherv",
        8,
        None,
        &[
            source_or_in_place(0, 1, 2, One),
            source(3, 4, 6, counted(5)),
        ],
    ),
    spreading(
        "MPI_Alltoall",
        7,
        data(3, 4, 5),
        &[
            source_or_in_place(0, 1, 2, EachRank),
            source(3, 4, 5, EachRank),
        ],
    ),
    spreading(
        "MPI_Alltoallv",
        9,
        None,
        &[source_or_in_place(0, 1, 3, counted(2))],
    ),
    collective("MPI_Alltoallw", 9, None),
    spreading(
        "MPI_Reduce",
        7,
        data(1, 2, 3),
        &[source_or_in_place(0, 2, 3, One)],
    ),
    spreading(
        "MPI_Allreduce",
        6,
        data(1, 2, 3),
        &[source_or_in_place(0, 2, 3, One), source(1, 2, 3, One)],
    ),
    collective("MPI_Reduce_scatter", 6, None),
    collective("MPI_Reduce_scatter_block", 6, data(1, 2, 3)),
    collective("MPI_Scan", 6, data(1, 2, 3)),
    collective("MPI_Exscan", 6, data(1, 2, 3)),
    collective("MPI_Neighbor_allgather", 7, None),
    collective("MPI_Neighbor_allgatherv", 8, None),
    collective("MPI_Neighbor_alltoall", 7, None),
    collective("MPI_Neighbor_alltoallv", 9, None),
    collective("MPI_Neighbor_alltoallw", 9, None),
    collective("MPI_Ibarrier", 2, None),
    collective("MPI_Ibcast", 6, data(0, 1, 2)),
    collective("MPI_Igather", 9, None),
    collective("MPI_Igatherv", 10, None),
    collective("MPI_Iscatter", 9, None),
    collective("MPI_Iscatterv", 10, None),
    collective("MPI_Iallgather", 8, None),
    collective("MPI_Iallgatherv", 9, None),
    collective("MPI_Ialltoall", 8, None),
    collective("MPI_Ialltoallv", 10, None),
    collective("MPI_Ialltoallw", 10, None),
    collective("MPI_Ireduce", 8, data(1, 2, 3)),
    collective("MPI_Iallreduce", 7, data(1, 2, 3)),
    collective("MPI_Ireduce_scatter", 7, None),
    collective("MPI_Ireduce_scatter_block", 7, data(1, 2, 3)),
    collective("MPI_Iscan", 7, data(1, 2, 3)),
    collective("MPI_Iexscan", 7, data(1, 2, 3)),
    collective("MPI_Ineighbor_allgather", 8, None),
    collective("MPI_Ineighbor_allgatherv", 9, None),
    collective("MPI_Ineighbor_alltoall", 8, None),
    collective("MPI_Ineighbor_alltoallv", 10, None),
    collective("MPI_Ineighbor_alltoallw", 10, None),
    // Persistent collectives: MPI_ in MPI 4.0, MPIX_ in Open MPI 4.
    recent(collective("MPI_Barrier_init", 3, None)),
    recent(collective("MPI_Bcast_init", 7, None)),
    recent(collective("MPI_Gather_init", 10, None)),
    recent(collective("MPI_Gatherv_init", 11, None)),
    recent(collective("MPI_Scatter_init", 10, None)),
    recent(collective("MPI_Scatterv_init", 11, None)),
    recent(collective("MPI_Allgather_init", 9, None)),
    recent(collective("MPI_Allgatherv_init", 10, None)),
    recent(collective("MPI_Alltoall_init", 9, None)),
    recent(collective("MPI_Alltoallv_init", 11, None)),
    recent(collective("MPI_Alltoallw_init", 11, None)),
    recent(collective("MPI_Reduce_init", 9, None)),
    recent(collective("MPI_Allreduce_init", 8, None)),
    recent(collective("MPI_Reduce_scatter_init", 8, None)),
    recent(collective("MPI_Reduce_scatter_block_init", 8, None)),
    recent(collective("MPI_Scan_init", 8, None)),
    recent(collective("MPI_Exscan_init", 8, None)),
    recent(collective("MPI_Neighbor_allgather_init", 9, None)),
    recent(collective("MPI_Neighbor_allgatherv_init", 10, None)),
    recent(collective("MPI_Neighbor_alltoall_init", 9, None)),
    recent(collective("MPI_Neighbor_alltoallv_init", 11, None)),
    recent(collective("MPI_Neighbor_alltoallw_init", 11, None)),
    recent(collective("MPIX_Barrier_init", 3, None)),
    recent(collective("MPIX_Bcast_init", 7, None)),
    recent(collective("MPIX_Gather_init", 10, None)),
    recent(collective("MPIX_Gatherv_init", 11, None)),
    recent(collective("MPIX_Scatter_init", 10, None)),
    recent(collective("MPIX_Scatterv_init", 11, None)),
    recent(collective("MPIX_Allgather_init", 9, None)),
    recent(collective("MPIX_Allgatherv_init", 10, None)),
    recent(collective("MPIX_Alltoall_init", 9, None)),
    recent(collective("MPIX_Alltoallv_init", 11, None)),
    recent(collective("MPIX_Alltoallw_init", 11, None)),
    recent(collective("MPIX_Reduce_init", 9, None)),
    recent(collective("MPIX_Allreduce_init", 8, None)),
    recent(collective("MPIX_Reduce_scatter_init", 8, None)),
    recent(collective("MPIX_Reduce_scatter_block_init", 8, None)),
    recent(collective("MPIX_Scan_init", 8, None)),
    recent(collective("MPIX_Exscan_init", 8, None)),
    recent(collective("MPIX_Neighbor_allgather_init", 9, None)),
    recent(collective("MPIX_Neighbor_allgatherv_init", 10, None)),
    recent(collective("MPIX_Neighbor_alltoall_init", 9, None)),
    recent(collective("MPIX_Neighbor_alltoallv_init", 11, None)),
    recent(collective("MPIX_Neighbor_alltoallw_init", 11, None)),
    life("MPI_Init", 2, 1, Role::Init),
    life("MPI_Init_thread", 4, 3, Role::Init),
    recent(life("MPI_Session_init", 3, 4, Role::Init)),
    life("MPI_Finalize", 0, 1, Role::Finalize),
    recent(life("MPI_Session_finalize", 1, 2, Role::Finalize)),
    life("MPI_Abort", 2, 3, Role::Abort),
    life("MPI_Type_free", 1, 2, Role::TypeFree),
];

/// Which binding a symbol belongs to: how its arguments are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// C: scalars by value, handles as the library's own words.
    C,
    /// C with 64-bit counts.
    CLarge,
    /// mpif.h, `use mpi`, and mpi_f08 where buffers are passed as addresses: everything by reference.
    Fortran,
    /// MPICH's mpi_f08: buffers as CFI descriptors (ISO/IEC TS 29113).
    FortranDescriptor,
    /// The same with 64-bit counts.
    FortranDescriptorLarge,
}

impl Binding {
    /// Whether arguments come by reference.
    pub const fn is_fortran(self) -> bool {
        !matches!(self, Binding::C | Binding::CLarge)
    }

    /// Whether buffers come as CFI descriptors.
    pub const fn has_descriptors(self) -> bool {
        matches!(self, Self::FortranDescriptor | Self::FortranDescriptorLarge)
    }
}

impl Call {
    /// Every spelling under which Open MPI or MPICH exports this call, with its binding.
    ///
    /// Fortran compilers mangle external names in four ways (lower case with none, one or two underscores, upper
    /// case); the libraries export all four, and names of their own for mpi_f08.
    pub fn spellings(&self) -> Vec<(String, Binding)> {
        let lower = self.name.to_lowercase();
        let upper = self.name.to_uppercase();
        let mut all = Vec::new();
        for p in ["", "P"] {
            all.push((format!("{p}{}", self.name), Binding::C));
            if self.large && !self.name.starts_with("MPIX") {
                all.push((format!("{p}{}_c", self.name), Binding::CLarge));
            }
            all.push((format!("{p}{upper}"), Binding::Fortran));
            all.push((format!("{p}{}_f", self.name), Binding::Fortran));
            all.push((format!("{p}{}_f08", self.name), Binding::Fortran));
            let p = p.to_lowercase();
            for suffix in ["", "_", "__", "_f08_"] {
                all.push((format!("{p}{lower}{suffix}"), Binding::Fortran));
            }
        }
        // MPICH's profiling names in mpi_f08 begin with pmpir_.
        let profiling = lower.replacen("mpi", "pmpir", 1);
        all.push((format!("{profiling}_f08_"), Binding::Fortran));
        if self.has_buffer() {
            let large = Binding::FortranDescriptorLarge;
            for stem in [lower, profiling] {
                all.push((format!("{stem}_f08ts_"), Binding::FortranDescriptor));
                all.push((format!("{stem}_f08ts_large_"), large));
            }
        }
        all
    }

    /// Whether the program may learn from it that an operation is over that an earlier call began, so that it may use the
    /// operation's buffer again when this call returns.
    pub const fn may_end_others(&self) -> bool {
        matches!(self.role, Role::Finish(_) | Role::Forget | Role::Inspect)
    }

    /// Number of arguments in this binding.
    pub const fn arguments(&self, binding: Binding) -> u8 {
        match binding.is_fortran() {
            true => self.fortran_arity,
            false => self.arity,
        }
    }

    /// Whether it has choice buffers, so that MPICH's mpi_f08 passes descriptors.
    fn has_buffer(&self) -> bool {
        match self.role {
            Role::Transfer { .. } => true,
            Role::Collective { .. } => !self.name.contains("arrier"),
            _ => self.name.starts_with("MPI_P") && self.name.ends_with("_init"),
        }
    }
}
