//! The store of a run with several kernels.
//!
//! All of them look into one store at a time, which does not change meanwhile. What a kernel learns it keeps for itself
//! until the next *exchange*: then the store takes it in, one kernel's after the other's. So what a kernel finds
//! depends on when in simulated time exchanges are, and not on which kernel is faster.

use super::RunStore;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use wormhole_kernel::memo::MemoStore;
use wormhole_memo_fmt::Store;

/// See the module.
pub(crate) struct CommonStore<'w> {
    records: RwLock<RunStore<'w>>,
    /// Per kernel.
    news: Vec<Mutex<News>>,
}

/// What has come of a kernel since the last exchange.
#[derive(Default)]
struct News {
    /// In the order they came.
    learnt: Vec<Learnt>,
    /// Keys of records of the common store that are in use.
    found: Vec<Box<[u64]>>,
}

struct Learnt {
    key: Box<[u64]>,
    value: Box<[u64]>,
}

impl<'w> CommonStore<'w> {
    /// For so many kernels, with these records so far.
    pub(crate) fn new(records: RunStore<'w>, kernels: usize) -> CommonStore<'w> {
        CommonStore { records: RwLock::new(records), news: (0..kernels).map(|_| Mutex::default()).collect() }
    }

    /// The store as a kernel sees it, with memory for its own records, which MUST be zero.
    pub(crate) fn of_kernel<'c>(&'c self, kernel: usize, own: &'c mut [u64]) -> KernelStore<'c, 'w> {
        KernelStore { common: self, news: &self.news[kernel], own: Store::new(own) }
    }

    /// The common records, for whoever is alone with them.
    pub(crate) fn records(&self) -> RwLockWriteGuard<'_, RunStore<'w>> {
        self.records.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what the kernels have learnt. None of them MUST be at work.
    pub(crate) fn exchange(&self) {
        let mut records = self.records();
        for news in &self.news {
            let News { learnt, found } = std::mem::take(&mut *locked(news));
            // A record that has been found is not the next to be forgotten.
            for key in found {
                records.find(&key);
            }
            learnt.iter().for_each(|Learnt { key, value }| records.insert(key, value));
        }
    }

    /// The common records, with all that has been learnt.
    pub(crate) fn into_records(self) -> RunStore<'w> {
        self.exchange();
        self.records.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

// A kernel that panics ends the run: nobody sees what it has left.
fn locked(news: &Mutex<News>) -> MutexGuard<'_, News> {
    news.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A kernel's own records, and the common ones.
pub(crate) struct KernelStore<'c, 'w> {
    common: &'c CommonStore<'w>,
    news: &'c Mutex<News>,
    own: Store<'c>,
}

impl<'w> KernelStore<'_, 'w> {
    fn common(&self) -> RwLockReadGuard<'_, RunStore<'w>> {
        self.common.records.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies a record that others have learnt. False if they have not.
    fn adopt(&mut self, key: &[u64]) -> bool {
        let Some(value) = self.common().peek(key).map(<[u64]>::to_vec) else { return false };
        self.own.insert(key, &value);
        locked(self.news).found.push(key.into());
        true
    }
}

impl MemoStore for KernelStore<'_, '_> {
    fn find(&mut self, key: &[u64]) -> Option<&[u64]> {
        let is_known = self.own.peek(key).is_some() || self.adopt(key);
        if is_known { self.own.find(key) } else { None }
    }

    fn insert(&mut self, key: &[u64], value: &[u64]) {
        self.own.insert(key, value);
        locked(self.news).learnt.push(Learnt { key: key.into(), value: value.into() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_kernel_learns_the_others_find_after_an_exchange() {
        let (mut words, mut own) = (vec![0; 10_000], [vec![0; 1_000], vec![0; 1_000]]);
        let common = CommonStore::new(RunStore::new(&mut words), 2);
        common.records().insert(&[1], &[10]);
        let [first, second] = &mut own;
        let [mut first, mut second] = [common.of_kernel(0, first), common.of_kernel(1, second)];
        second.insert(&[2], &[21]);
        first.insert(&[2], &[20]);
        first.insert(&[3], &[30]);
        assert_eq!(second.find(&[1]), Some(&[10][..]), "what was known at the start");
        assert_eq!(second.find(&[2]), Some(&[21][..]));
        assert_eq!(second.find(&[3]), None, "nothing that the other one has learnt meanwhile");
        common.exchange();
        assert_eq!((second.find(&[3]), first.find(&[2])), (Some(&[30][..]), Some(&[20][..])));
        let mut records = common.into_records();
        // Of two records of one key that of the last kernel stays, whoever was first.
        assert_eq!(
            [1, 2, 3, 4].map(|key| records.find(&[key]).map(|value| value[0])),
            [Some(10), Some(21), Some(30), None]
        );
    }

    #[test]
    fn records_that_a_kernel_finds_are_not_forgotten_for_newer_ones() {
        // Room for three records, and one more comes.
        let (mut words, mut own) = (vec![0; 64], vec![0; 1_000]);
        let common = CommonStore::new(RunStore::new(&mut words), 1);
        let mut kernel = common.of_kernel(0, &mut own);
        common.records().insert(&[1], &[0; 7]);
        assert!(kernel.find(&[1]).is_some());
        for key in 2..5 {
            kernel.insert(&[key], &[0; 7]);
        }
        let records = common.into_records();
        assert!(records.peek(&[1]).is_some() && records.peek(&[2]).is_none());
    }
}
