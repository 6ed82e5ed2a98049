use std::fs;

use super::*;
use crate::flow::START;
use crate::state::merge::tests::key;
use crate::state::{Recording, Refusal, load_graphs, load_graphs_from, recordings_at};

fn modules() -> Vec<Module> {
    vec![Module {
        name: "prog".into(),
        path: "/nowhere/prog".into(),
        build: "id:1".into(),
    }]
}

/// A loop of as many nodes, each called `calls` times.
fn ring(nodes: u32, calls: u64) -> Graph {
    let edges = [(START, 0, 1)]
        .into_iter()
        .chain((0..nodes).map(|node| (node, (node + 1) % nodes, calls)));
    Graph {
        nodes: (0..nodes)
            .map(|node| Node {
                module: 0,
                offset: u64::from(node) * 16,
                call: "MPI_Send".into(),
                bytes: 1 << 16,
                tunable: true,
            })
            .collect(),
        flow: Flowgraph::from_edges(edges).unwrap(),
    }
}

fn record(dir: &std::path::Path, rank: u32, began: u64, ending: Ending, graph: Graph) {
    let recording = Recording::new(dir, &key(), rank, began);
    let saved = recording
        .finish(ending, vec![(0, modules(), graph)])
        .unwrap();
    assert!(saved.merged && saved.set_aside.is_none());
}

fn calls(dir: &std::path::Path, rank: u32) -> u64 {
    let shard = load_graphs(dir, &key(), rank).unwrap().unwrap();
    shard.of_rank(rank).map(Graph::calls).sum()
}

#[test]
fn equal_graphs_are_stored_once_and_the_cpu_does_not_count() {
    let dir = tempfile::tempdir().unwrap();
    for rank in [0, 1, 2, 70] {
        record(dir.path(), rank, 1, Ending::Finalize, ring(3, 5));
    }
    record(dir.path(), 3, 1, Ending::Finalize, ring(4, 5));
    let mut elsewhere = key();
    elsewhere.cpu = "another".into();
    elsewhere.catalogue = "another".into();
    let shard = load_graphs(dir.path(), &elsewhere, 1).unwrap().unwrap();
    assert_eq!((shard.graphs.len(), shard.ranks.len()), (2, 4));
    assert!(load_graphs(dir.path(), &key(), 4).unwrap().is_none());
    let (all, refusals) = recordings_at(dir.path()).unwrap();
    assert!(refusals.is_empty() && all.len() == 1 && all[0].shards.len() == 2);
    let file = &all[0].files[0];
    let found = load_graphs_from(file, &key(), 70).unwrap().unwrap();
    assert_eq!(found.of_rank(70).count(), 1);
    assert_eq!(found.site(&found.graphs[0], 1).unwrap().offset, 16);
    // The learnt state is something else, in the same directory.
    assert!(crate::state::states_at(dir.path()).unwrap().0.is_empty());
    assert!(crate::state::load(dir.path(), &key(), 0).unwrap().is_none());
}

#[test]
fn a_later_recording_replaces_an_earlier_one_unless_it_got_less_far() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), 0, 10, Ending::Exit, ring(3, 5));
    record(dir.path(), 0, 20, Ending::Exit, ring(2, 7));
    assert_eq!(calls(dir.path(), 0), 15);
    record(dir.path(), 0, 30, Ending::Cut, ring(3, 9));
    assert_eq!(calls(dir.path(), 0), 15);
    record(dir.path(), 0, 5, Ending::Finalize, ring(3, 9));
    assert_eq!(calls(dir.path(), 0), 28);
    assert_eq!(
        load_graphs(dir.path(), &key(), 0)
            .unwrap()
            .unwrap()
            .graphs
            .len(),
        1
    );
}

#[test]
fn a_killed_run_leaves_its_checkpoints_and_the_end_of_a_run_removes_them() {
    let dir = tempfile::tempdir().unwrap();
    let recording = Recording::new(dir.path(), &key(), 0, 10);
    recording.checkpoint(0, modules(), ring(3, 5)).unwrap();
    recording.checkpoint(0, modules(), ring(3, 50)).unwrap();
    recording.checkpoint(1, modules(), ring(2, 1)).unwrap();
    let shard = load_graphs(dir.path(), &key(), 0).unwrap().unwrap();
    assert_eq!(shard.ranks[&0].ending, Ending::Cut);
    let calls: Vec<u64> = shard.of_rank(0).map(Graph::calls).collect();
    assert_eq!(calls, [151, 3]);
    let threads = vec![(0, modules(), ring(3, 60)), (1, modules(), ring(2, 1))];
    recording.finish(Ending::Finalize, threads).unwrap();
    let shard = load_graphs(dir.path(), &key(), 0).unwrap().unwrap();
    assert_eq!(shard.ranks[&0].ending, Ending::Finalize);
    assert_eq!(shard.of_rank(0).map(Graph::calls).max(), Some(181));
    let left = fs::read_dir(dir.path()).unwrap().flatten();
    assert_eq!(
        left.filter(|e| !e.path().ends_with(".lock"))
            .filter(|e| e.path().to_string_lossy().contains("pending"))
            .count(),
        0
    );
}

#[test]
fn another_build_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), 0, 1, Ending::Finalize, ring(3, 5));
    let mut rebuilt = key();
    rebuilt.build = "id:99".into();
    let text = load_graphs(dir.path(), &rebuilt, 0)
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("flowgraph") && text.contains("another build of the executable"),
        "{text}"
    );
    let file = recordings_at(dir.path())
        .unwrap()
        .0
        .remove(0)
        .files
        .remove(0);
    let text = load_graphs_from(&file, &rebuilt, 0)
        .unwrap_err()
        .to_string();
    assert!(text.contains("another build of the executable"), "{text}");
}

#[test]
fn damaged_and_foreign_files_are_refused_never_believed() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), 0, 1, Ending::Finalize, ring(3, 5));
    let file = recordings_at(dir.path())
        .unwrap()
        .0
        .remove(0)
        .files
        .remove(0);
    let whole = fs::read(&file).unwrap();
    for cut in [0, 1, whole.len() / 2, whole.len() - 3] {
        fs::write(&file, &whole[..cut]).unwrap();
        assert!(matches!(
            load_graphs_from(&file, &key(), 0),
            Err(Refusal::Damaged { .. })
        ));
        assert!(matches!(
            load_graphs(dir.path(), &key(), 0),
            Err(Refusal::Damaged { aside: Some(_), .. })
        ));
        assert!(load_graphs(dir.path(), &key(), 0).unwrap().is_none());
    }
    let text = String::from_utf8(whole).unwrap();
    fs::write(&file, text.replace("copytune-graph", "copytune-other")).unwrap();
    assert!(matches!(
        load_graphs(dir.path(), &key(), 0),
        Err(Refusal::Foreign { .. })
    ));
    fs::write(&file, text.replacen("[0,1,5]", "[0,1,6]", 1)).unwrap();
    assert!(matches!(
        load_graphs_from(&file, &key(), 0),
        Err(Refusal::Damaged { .. })
    ));
    assert!(load_graphs_from(&dir.path().join("none"), &key(), 0).is_err());
}

#[test]
fn indices_that_name_nothing_are_damage() {
    let mut shard = GraphShard::new(key());
    let graph = shard.add_graph(&modules(), ring(3, 1));
    let recorded = Recorded {
        began: 1,
        ending: Ending::Exit,
        threads: BTreeMap::from([(0, graph)]),
    };
    shard.ranks.insert(0, recorded);
    assert!(shard.is_consistent());
    let mut broken = shard.clone();
    broken.graphs[0].nodes[1].module = 7;
    assert!(!broken.is_consistent());
    let mut broken = shard.clone();
    broken.graphs[0].nodes.pop();
    assert!(!broken.is_consistent());
    shard.graphs.clear();
    assert!(!shard.is_consistent());
}
