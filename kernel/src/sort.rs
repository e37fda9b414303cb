//! Sorting in place. The order of items with equal keys is not said, and not the same on all targets: keys MUST differ.

/// Sorts by a key.
#[cfg(target_pointer_width = "64")]
pub(crate) fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    items.sort_unstable_by_key(key);
}

/// Sorts by a key. The library's sort takes 3 KiB of code for every type, and as much of the stack.
#[cfg(not(target_pointer_width = "64"))]
pub(crate) fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    heap_sort(items, key);
}

#[cfg(any(test, not(target_pointer_width = "64")))]
fn heap_sort<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    let sift_down = |items: &mut [T], mut at: usize| {
        while 2 * at + 1 < items.len() {
            let left = 2 * at + 1;
            let right = (left + 1).min(items.len() - 1);
            let child = if key(&items[left]) < key(&items[right]) { right } else { left };
            if key(&items[at]) >= key(&items[child]) {
                break;
            }
            items.swap(at, child);
            at = child;
        }
    };
    (0..items.len() / 2).rev().for_each(|at| sift_down(items, at));
    for end in (1..items.len()).rev() {
        items.swap(0, end);
        sift_down(&mut items[..end], 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_sorting_agree() {
        let mut state = 7u64;
        let words: [u64; 200] = core::array::from_fn(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 32
        });
        for length in 0..=words.len() {
            let (mut one, mut other) = (words, words);
            sort_by_key(&mut one[..length], |word| core::cmp::Reverse(*word));
            heap_sort(&mut other[..length], |word| core::cmp::Reverse(*word));
            assert_eq!(one, other);
            assert!(one[..length].is_sorted_by(|a, b| a > b));
        }
    }
}
