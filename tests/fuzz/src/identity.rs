use crate::draw::Draw;
use tidegate_core::{MAX_KEY_BYTES, default_start, is_name, with_identity};
use tidegate_oracle::key::{self, bytes};

/// An identity reads back as the name and key that it was made of, so no two of them are equal; keys
/// that differ as JavaScript strings differ as bytes; and any text is a legal name exactly where the rule allows it.
pub fn identity(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let expected = (1..=64).contains(&text.chars().count()) && text.chars().all(legal);
        assert_eq!(is_name(text), expected, "{text:?}");
    }
    let mut draw = Draw::new(data);
    let parts: [Parts; 2] = std::array::from_fn(|_| Parts::draw(&mut draw));
    let [one, other] = parts.each_ref().map(Parts::identity);
    assert_eq!(parts[0] == parts[1], one == other, "{parts:?}");
    for (parts, identity) in parts.iter().zip([one, other]) {
        assert_eq!(read(&identity), (parts.name.as_bytes(), parts.key_bytes().as_deref()));
        let period = draw.size(1.0, 1_099_511_627_776.0).round();
        let start = default_start(&parts.name, parts.key_bytes().as_deref(), period);
        assert_eq!(start, key::default_start(&parts.name, parts.key.as_deref(), period));
        assert!((0.0..period).contains(&start) && start.floor() == start);
    }
    let long = vec![b'k'; usize::from(draw.below(3000))];
    assert_eq!(long.len() <= MAX_KEY_BYTES, with_identity("x".repeat(64), Some(&long), |_| ()).is_some());
}

#[derive(Debug, PartialEq)]
struct Parts {
    name: String,
    key: Option<Vec<u16>>,
}

impl Parts {
    fn draw(draw: &mut Draw<'_>) -> Parts {
        Parts { name: draw.name(), key: draw.yes().then(|| draw.units(300)) }
    }

    fn key_bytes(&self) -> Option<Vec<u8>> {
        self.key.as_deref().map(bytes)
    }

    fn identity(&self) -> Vec<u8> {
        with_identity(&self.name, self.key_bytes().as_deref(), <[u8]>::to_vec).expect("it fits")
    }
}

/// Decodes an identity, according to its documentation.
fn read(identity: &[u8]) -> (&[u8], Option<&[u8]>) {
    let colon = identity.iter().position(|b| *b == b':');
    colon.map_or((identity, None), |at| (&identity[..at], Some(&identity[at + 1..])))
}
