//! vLLM's cache specs as they print: `Class(key=value, key=(a, b), ...)`.

use alloc::vec::Vec;

/// A printed spec: its class and its keys with their values as written.
#[derive(Debug)]
pub(super) struct Spec<'a> {
    pub(super) class: &'a str,
    values: Vec<(&'a str, &'a str)>,
}

impl<'a> Spec<'a> {
    /// `None` if it is not of that form.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (class, rest) = text.trim().split_once('(')?;
        let values = items(rest.strip_suffix(')')?)?
            .into_iter()
            .map(|item| item.split_once('='))
            .collect::<Option<_>>()?;
        Some(Self { class, values })
    }

    /// The value of a key as written; `None` also where it is `None`.
    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        let mut found = self.values.iter().filter(|(name, _)| *name == key);
        found
            .next()
            .map(|(_, value)| *value)
            .filter(|value| *value != "None")
    }

    pub(super) fn number<N: core::str::FromStr>(&self, key: &str) -> Option<N> {
        self.get(key)?.parse().ok()
    }

    /// The items of a tuple, as written.
    pub(super) fn tuple(&self, key: &str) -> Option<Vec<&'a str>> {
        tuple(self.get(key)?)
    }
}

/// The items of a tuple, as written.
pub(super) fn tuple(text: &str) -> Option<Vec<&str>> {
    items(text.strip_prefix('(')?.strip_suffix(')')?)
}

/// The numbers of a tuple.
pub(super) fn numbers(text: &str) -> Option<Vec<u64>> {
    tuple(text)?
        .into_iter()
        .map(|item| item.parse().ok())
        .collect()
}

/// Splits at commas that stand in no brackets and no quotes.
fn items(text: &str) -> Option<Vec<&str>> {
    let mut depth = 0_u32;
    let mut quoted = false;
    let mut items = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(|letter| {
        match letter {
            '\'' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth = depth.saturating_add(1),
            ')' | ']' | '}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0 && !quoted
    }) {
        let (item, tail) = rest.split_at_checked(at)?;
        items.push(item.trim());
        rest = tail.strip_prefix(',')?;
    }
    if depth != 0 || quoted {
        return None;
    }
    if !rest.trim().is_empty() {
        items.push(rest.trim());
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::{Spec, numbers};

    #[test]
    fn nested_tuples_and_quotes_are_one_value() {
        let spec = Spec::parse("S(a=1, b=((3, 4), (5,)), c='x, y', d=None, e=E.F)").unwrap();
        assert_eq!((spec.class, spec.number("a")), ("S", Some(1_u32)));
        let tuples: Vec<_> = spec.tuple("b").unwrap().into_iter().map(numbers).collect();
        assert_eq!(tuples, [Some(vec![3, 4]), Some(vec![5])]);
        assert_eq!(
            (spec.get("c"), spec.get("d"), spec.get("e")),
            (Some("'x, y'"), None, Some("E.F"))
        );
    }

    #[test]
    fn what_is_not_a_spec_is_refused() {
        for text in ["", "S", "S(", "S(a=(1)", "S(a)", "S(a='x)", "S(a=(1))b"] {
            assert!(Spec::parse(text).is_none(), "{text}");
        }
    }
}
