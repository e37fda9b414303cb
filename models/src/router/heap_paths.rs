//! Distance fields on the heap: as many as are asked for.

use super::distance::{PathMemory, UNREACHED, forwards, live_ports};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use hashbrown::HashMap;
use wormhole_kernel::fabric::Fabric;
use wormhole_kernel::ids::{NodeId, PortId};

/// Distances from switches, by switch.
#[derive(Default)]
pub struct HeapPaths {
    fields: HashMap<NodeId, Box<[u16]>>,
}

impl PathMemory for HeapPaths {
    /// Kept for its memory.
    type Ports = Vec<PortId>;

    fn field(&mut self, fabric: &Fabric<'_>, switch: NodeId) -> &[u16] {
        self.fields.entry(switch).or_insert_with(|| {
            let mut field = vec![UNREACHED; fabric.node_count()].into_boxed_slice();
            let mut queue = VecDeque::from([switch]);
            field[switch.index()] = 0;
            while let Some(node) = queue.pop_front() {
                let next = field[node.index()] + 1;
                for neighbour in live_ports(fabric, node).map(|p| fabric.neighbour(p)) {
                    if forwards(fabric, neighbour) && field[neighbour.index()] == UNREACHED {
                        field[neighbour.index()] = next;
                        queue.push_back(neighbour);
                    }
                }
            }
            field
        })
    }

    fn clear(&mut self) {
        self.fields.clear();
    }

    fn room(ports: &mut Vec<PortId>, count: usize) -> &mut [PortId] {
        ports.resize(count, PortId::NONE);
        ports
    }
}
