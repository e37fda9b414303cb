//! Two binary trees: chunks of one half of the bytes are summed up one tree and sent down it again, those of the other
//! half another one, whose inner nodes are the leaves of the first.

use super::{Algorithm, Hop, Member, Need, Pipeline};

/// Lanes of a channel: for each tree one up and one down to each of two children.
const TREES: u32 = 2;
const UP: u32 = 0;
const LANES_OF_TREE: u32 = 3;

/// See the module.
pub(super) struct DoubleTree {
    /// With a tree for a channel: so channels are twice those asked for.
    pipeline: Pipeline,
    rounds: u32,
    trees: [Tree; TREES as usize],
}

struct Tree {
    parents: Vec<Option<Member>>,
    children: Vec<[Option<Member>; 2]>,
}

impl Tree {
    /// A binary tree over the members in their order, beginning at one of them.
    fn new(members: u32, first: u32) -> Tree {
        let member = |label: u32| (label - 1 + first) % members;
        let mut tree = Tree { parents: vec![None; members as usize], children: vec![[None; 2]; members as usize] };
        for label in 1..=members {
            let Some(parent) = parent_label(label, members) else { continue };
            tree.parents[member(label) as usize] = Some(member(parent));
            tree.children[member(parent) as usize][(label > parent) as usize] = Some(member(label));
        }
        tree
    }

    /// Needs of what a member makes of its children's chunks.
    fn sums_of(&self, member: Member, lane: u32, index: u32) -> [Option<Need>; 2] {
        self.children[member as usize].map(|child| child.map(|from| Need { from, lane, index }))
    }
}

/// The tree over labels 1 to n in which a label divisible by 2^h lies above those within 2^h of it; `None` at its root.
fn parent_label(label: u32, labels: u32) -> Option<u32> {
    let bit = 1 << label.trailing_zeros();
    let above = (label - bit) | bit << 1;
    if above <= labels { Some(above) } else { Some(label - bit).filter(|&below| below > 0) }
}

impl DoubleTree {
    pub(super) fn new(members: u32, pipeline: Pipeline) -> DoubleTree {
        let pipeline = Pipeline { channels: TREES * pipeline.channels, ..pipeline };
        // Begun one member later, odd labels become even ones: leaves become inner nodes.
        let trees = [Tree::new(members, 0), Tree::new(members, 1 % members)];
        DoubleTree { pipeline, rounds: pipeline.rounds(1), trees }
    }
}

impl Algorithm for DoubleTree {
    fn lanes(&self) -> u32 {
        self.pipeline.channels * LANES_OF_TREE
    }

    fn hop(&self, member: Member, lane: u32, index: u32) -> Option<Hop> {
        if index >= self.rounds {
            return None;
        }
        let (channel, way) = (lane / LANES_OF_TREE, lane % LANES_OF_TREE);
        let tree = &self.trees[(channel % TREES) as usize];
        let lane_of = |way: u32| channel * LANES_OF_TREE + way;
        let sums = tree.sums_of(member, lane_of(UP), index);
        let parent = tree.parents[member as usize];
        let bytes = self.pipeline.round(channel, index, self.rounds);
        if way == UP {
            return parent.map(|to| Hop { to, bytes, needs: sums });
        }
        let to = tree.children[member as usize][(way - 1) as usize]?;
        let needs = parent.map_or(sums, |from| {
            let side = tree.children[from as usize].iter().position(|c| *c == Some(member)).unwrap_or(0) as u32;
            [Some(Need { from, lane: lane_of(1 + side), index }), None]
        });
        Some(Hop { to, bytes, needs })
    }
}
