//! Tasks that wait for one another, put in an order in which each comes after those it waits for.

use super::task::{Task, TaskId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Orders tasks whose `after` and `with` name positions in the list, before or behind their own, and renumbers what
/// these name. Of tasks that wait for nothing more, the first in the list comes first.
///
/// # Errors
/// The positions of a cycle: each waits for the next, the last for the first.
pub(crate) fn arrange(tasks: Vec<Task>) -> Result<Vec<Task>, Vec<TaskId>> {
    let order = order(&tasks)?;
    let mut places = vec![0; tasks.len()];
    for (place, &old) in (0..).zip(&order) {
        places[old as usize] = place;
    }
    let mut tasks: Vec<Option<Task>> = tasks.into_iter().map(Some).collect();
    let moved = order.iter().filter_map(|&old| tasks[old as usize].take());
    Ok(moved.map(|task| renumbered(task, &places)).collect())
}

fn renumbered(mut task: Task, places: &[TaskId]) -> Task {
    for list in [&mut task.after, &mut task.with] {
        list.iter_mut().for_each(|id| *id = places[*id as usize]);
        list.sort_unstable();
        list.dedup();
    }
    task
}

fn waits_for(task: &Task) -> impl Iterator<Item = TaskId> + '_ {
    task.after.iter().chain(&task.with).copied()
}

/// Positions in the list, in order.
fn order(tasks: &[Task]) -> Result<Vec<TaskId>, Vec<TaskId>> {
    let mut missing: Vec<usize> = tasks.iter().map(|t| waits_for(t).count()).collect();
    let mut waiting = vec![Vec::new(); tasks.len()];
    for (id, task) in (0..).zip(tasks) {
        waits_for(task).for_each(|other| waiting[other as usize].push(id));
    }
    let free = (0..).zip(&missing).filter(|(_, missing)| **missing == 0);
    let mut ready: BinaryHeap<Reverse<TaskId>> = free.map(|(id, _)| Reverse(id)).collect();
    let mut order = Vec::with_capacity(tasks.len());
    while let Some(Reverse(id)) = ready.pop() {
        order.push(id);
        for &other in &waiting[id as usize] {
            missing[other as usize] -= 1;
            if missing[other as usize] == 0 {
                ready.push(Reverse(other));
            }
        }
    }
    if order.len() == tasks.len() { Ok(order) } else { Err(cycle(tasks, &missing)) }
}

/// A cycle among the tasks that still miss others. Each of them waits for another one of them, so going from one to the
/// next must come back somewhere.
fn cycle(tasks: &[Task], missing: &[usize]) -> Vec<TaskId> {
    let is_stuck = |id: &TaskId| missing[*id as usize] > 0;
    let mut path = Vec::new();
    let mut at_step = vec![None; tasks.len()];
    let mut next = (0..tasks.len() as TaskId).find(is_stuck);
    while let Some(id) = next {
        if let Some(first) = at_step[id as usize] {
            path.drain(..first);
            break;
        }
        at_step[id as usize] = Some(path.len());
        path.push(id);
        next = waits_for(&tasks[id as usize]).find(is_stuck);
    }
    let lowest = path.iter().enumerate().min_by_key(|(_, id)| **id).map_or(0, |(at, _)| at);
    path.rotate_left(lowest);
    path
}

#[cfg(test)]
mod tests {
    use super::super::task::Work;
    use super::*;

    /// Tasks that end after these; the tag tells them apart.
    fn tasks(after: &[&[TaskId]]) -> Vec<Task> {
        let send = |tag| Work::Send { to: 0, bytes: 1, tag };
        (0..).zip(after).map(|(tag, after)| Task::new(send(tag), after.to_vec())).collect()
    }

    #[test]
    fn each_comes_after_those_it_waits_for() {
        let mut list = tasks(&[&[3], &[], &[1, 1], &[]]);
        list[2].with = vec![0];
        let arranged = arrange(list).unwrap();
        let tags: Vec<&Work> = arranged.iter().map(|t| &t.work).collect();
        let want = [1, 3, 0, 2].map(|tag| Work::Send { to: 0, bytes: 1, tag });
        assert_eq!(tags, want.iter().collect::<Vec<_>>());
        assert_eq!((&arranged[2].after, &arranged[3].after, &arranged[3].with), (&vec![1], &vec![0], &vec![2]));
        assert_eq!(arrange(Vec::new()), Ok(Vec::new()));
    }

    #[test]
    fn cycles_are_found() {
        assert_eq!(arrange(tasks(&[&[], &[0, 4], &[1], &[4], &[2]])), Err(vec![1, 4, 2]));
        assert_eq!(arrange(tasks(&[&[0]])), Err(vec![0]));
        assert_eq!(arrange(tasks(&[&[2], &[2], &[1]])), Err(vec![1, 2]), "0 waits for it, but is no part");
    }
}
