//! Making a case that fails smaller for as long as it still fails.
//!
//! Greedy, over plain data: a case says what is next smaller to it, boldest first, and the first of these that still
//! fails takes its place. What proptest does to a tree of choices does not fit here: to take a switch out of a fabric
//! means to take its links, and to name all nodes behind it anew.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

/// Something that can be made smaller.
pub trait Shrink: Sized {
    /// The next smaller ones, the boldest first; each smaller by some measure that cannot fall for ever. None are known
    /// unless somebody says how.
    fn smaller(&self) -> Vec<Self> {
        Vec::new()
    }
}

/// Runs that a shrinking may take: enough for any world of these tests.
const MOST_RUNS: usize = 4_000;

/// The smallest case that is found from one that fails.
pub fn shrink<C: Shrink>(case: C, mut fails: impl FnMut(&C) -> bool) -> C {
    let (mut case, mut runs) = (case, 0);
    'smaller: loop {
        for smaller in case.smaller() {
            runs += 1;
            if runs > MOST_RUNS {
                return case;
            }
            if fails(&smaller) {
                case = smaller;
                continue 'smaller;
            }
        }
        return case;
    }
}

/// A list without some of its items: without half of them, a quarter, and so on to each single one.
pub fn without_some<T: Clone>(list: &[T]) -> Vec<Vec<T>> {
    let mut shorter = vec![];
    let mut size = list.len().div_ceil(2);
    while size > 0 {
        for first in (0..list.len()).step_by(size) {
            let last = (first + size).min(list.len());
            shorter.push([&list[..first], &list[last..]].concat());
        }
        size /= 2;
    }
    shorter
}

thread_local! {
    /// What the panic of this thread has to say, while it is to be kept and not printed.
    static KEPT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What a check that panics has to say, and where. It is not printed: a shrinking fails often.
pub fn failure(check: impl FnOnce()) -> Option<String> {
    // The hook is the process's, and other tests go on to print.
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |panic| {
            let is_kept = KEPT.with_borrow_mut(|kept| kept.as_mut().map(|text| *text = panic.to_string()).is_some());
            if !is_kept {
                print(panic);
            }
        }));
    });
    KEPT.set(Some(String::new()));
    let result = catch_unwind(AssertUnwindSafe(check));
    let text = KEPT.take();
    result.err().and(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct Numbers(Vec<u64>);

    impl Shrink for Numbers {
        fn smaller(&self) -> Vec<Numbers> {
            let halved = |at: usize| {
                let mut list = self.0.clone();
                list[at] /= 2;
                (list[at] != self.0[at]).then_some(list)
            };
            without_some(&self.0).into_iter().chain((0..self.0.len()).filter_map(halved)).map(Numbers).collect()
        }
    }

    #[test]
    fn the_smallest_that_fails_is_found() {
        let numbers = Numbers((0..100).collect());
        let least = shrink(numbers, |Numbers(list)| list.iter().filter(|&&number| number >= 10).count() >= 3);
        assert_eq!(least.0.len(), 3);
        assert!(least.0.iter().all(|&number| (10..20).contains(&number)), "{:?}", least.0);
    }

    #[test]
    fn a_list_loses_each_part() {
        assert_eq!(without_some(&[1, 2, 3]), [vec![3], vec![1, 2], vec![2, 3], vec![1, 3], vec![1, 2]]);
        assert!(without_some::<u8>(&[]).is_empty());
    }

    #[test]
    fn a_failure_is_told() {
        assert_eq!(failure(|| {}), None);
        let text = failure(|| panic!("of {}", 3)).expect("a panic");
        assert!(text.contains("shrink.rs:") && text.ends_with("of 3"), "{text}");
    }
}
