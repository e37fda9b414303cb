//! The public API of the libraries, item by item, as it was last agreed to: no change of it goes in unseen.
//!
//! `UPDATE_API=1 cargo test -p wormhole-tests --test tidy` writes the lists anew. Until 1.0 an item that goes or
//! changes raises the minor number of the version, one that comes the patch number: who reviews the list sees to that.

use super::root;
use public_api::Builder;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use wormhole_tests::component;

/// Libraries, with the features that the list is of.
const LIBRARIES: [(&str, &str); 3] =
    [("wormhole-kernel", ""), ("wormhole-memo-fmt", ""), ("wormhole-models", "alloc,kit,plugin")];

/// The version of the compiler's description that the crate `public-api` reads.
const FORMAT: &str = "\"format_version\":57";

/// The items of a library; `None` if the compiler describes them in another format than is read here.
fn items(package: &str, features: &str) -> Option<Vec<String>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("public-api");
    let output = Command::new(env!("CARGO"))
        .args(["rustdoc", "--quiet", "--locked", "--lib", "--package", package, "--features", features, "--target-dir"])
        .arg(&folder)
        .args(["--", "-Zunstable-options", "--output-format", "json"])
        // The description is not stable.
        .env("RUSTC_BOOTSTRAP", "1")
        .current_dir(root())
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json = folder.join("doc").join(package.replace('-', "_") + ".json");
    if !fs::read_to_string(&json).expect("the description").contains(FORMAT) {
        return None;
    }
    let builder = Builder::from_rustdoc_json(&json).sorted(true);
    let api = builder.omit_blanket_impls(true).omit_auto_trait_impls(true).omit_auto_derived_impls(true).build();
    Some(api.expect("an API").items().map(|item| item.to_string()).collect())
}

#[test]
fn the_public_api_is_as_agreed() {
    for (package, features) in LIBRARIES {
        let items = items(package, features);
        let component = "a compiler that describes crates in format 57";
        if !component::is_there("the_public_api_is_as_agreed", component, items.is_some()) {
            return;
        }
        let found = items.unwrap_or_default().join("\n") + "\n";
        let list = root().join("tests/data/api").join(format!("{package}.txt"));
        if std::env::var_os("UPDATE_API").is_some() {
            fs::write(&list, &found).expect("the list");
        }
        let agreed = fs::read_to_string(&list).expect("the list");
        let (now, before): (BTreeSet<&str>, BTreeSet<&str>) = (found.lines().collect(), agreed.lines().collect());
        let mut changes: Vec<String> = before.difference(&now).map(|item| format!("  - {item}")).collect();
        changes.extend(now.difference(&before).map(|item| format!("  + {item}")));
        assert!(changes.is_empty(), "the public API of {package} (UPDATE_API=1 agrees):\n{}", changes.join("\n"));
    }
}
