use tidegate_core::{STATE_BYTES, State, decode, encode};

/// Any bytes are corrupt, or decode to a state that encodes to the same bytes; and any two finite numbers read back.
pub fn codec(data: &[u8]) {
    match decode(data) {
        Ok(state) => {
            assert_eq!(encode(state), data);
            assert!(state.value().is_finite() && state.ts().is_finite());
        }
        Err(corrupt) => {
            assert_eq!(corrupt.length, data.len());
            let sound = |part: &[u8; 8]| f64::from_le_bytes(*part).is_finite();
            let numbers = data.as_chunks::<8>();
            let is_state = data.len() == STATE_BYTES && numbers.0.iter().all(sound);
            assert!(!is_state, "a valid state was reported as corrupt");
        }
    }
    for pair in data.as_chunks::<16>().0 {
        let (value, ts) = pair.split_at(8);
        let number = |part: &[u8]| f64::from_le_bytes(part.try_into().expect("8 bytes"));
        if let Ok(state) = State::new(number(value), number(ts)) {
            let back = decode(&encode(state)).expect("an encoded state does not decode");
            assert_eq!((back.value().to_bits(), back.ts().to_bits()), (state.value().to_bits(), state.ts().to_bits()));
        }
    }
}
