//! The hot call, on Node-API itself.

use crate::file::InFolder;
use crate::key::KeyBytes;
use crate::shared::table;
use crate::thread::{with_limit, with_numbers};
use napi::sys;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use tidegate_core::{Decision, MAX_KEY_BYTES};
use tidegate_table::wire::{BROKEN, call, tell};
use tidegate_table::{Call, Limit};

/// The call is about the limit without a key.
const NO_KEY: u32 = 1 << 3;
/// The key is longer than a key may be.
const KEY_TOO_LONG: u32 = 1 << 10;

/// Where a call's state is.
pub(crate) trait Target: Copy {
    /// The answer, or a status word.
    fn decide(self, limit: &Limit, key: Option<&[u8]>, call: Call) -> Result<Decision, u32>;
}

/// In the process's table.
#[derive(Clone, Copy)]
struct InTable;

impl Target for InTable {
    #[inline(always)]
    fn decide(self, limit: &Limit, key: Option<&[u8]>, call: Call) -> Result<Decision, u32> {
        table().map(|table| table.decide(limit, key, call)).ok_or(BROKEN)
    }
}

/// `decide(limit, flags, key)`: one call on one limit and key, with now, count and random in the first three numbers.
/// Returns the status word of [`tidegate_table::wire`]; the answer is in the numbers.
pub(crate) extern "C" fn decide(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    returning(env, || answer(&Arguments::of(env, info)?, |_| Some(InTable)))
}

/// `fileDecide(limit, flags, key, store)`: the same, in a folder.
pub(crate) extern "C" fn file_decide(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    returning(env, || answer(&Arguments::of(env, info)?, |arguments| arguments.number(3).map(InFolder)))
}

#[inline(always)]
fn returning(env: sys::napi_env, status: impl FnOnce() -> Option<u32>) -> sys::napi_value {
    let status = catch_unwind(AssertUnwindSafe(status)).ok().flatten().unwrap_or(BROKEN);
    let mut result = ptr::null_mut();
    // Safety: `env` is the one this was called with.
    unsafe { sys::napi_create_uint32(env, status, &mut result) };
    result
}

/// Units of a key that is read at once; a longer one is read again.
const SHORT: usize = 64;

/// The arguments of one call.
struct Arguments {
    env: sys::napi_env,
    values: [sys::napi_value; 4],
}

impl Arguments {
    fn of(env: sys::napi_env, info: sys::napi_callback_info) -> Option<Arguments> {
        let mut values = [ptr::null_mut(); 4];
        let mut count = values.len();
        // Safety: `env` and `info` are the ones of this call, and there is room for four values. What is missing is
        // undefined, and reading that as a number or a string fails without effect.
        let status = unsafe {
            sys::napi_get_cb_info(env, info, &mut count, values.as_mut_ptr(), ptr::null_mut(), ptr::null_mut())
        };
        (status == sys::Status::napi_ok).then_some(Arguments { env, values })
    }

    fn number(&self, at: usize) -> Option<u32> {
        let mut number = 0;
        // Safety: a value of this call.
        let status = unsafe { sys::napi_get_value_uint32(self.env, self.values[at], &mut number) };
        (status == sys::Status::napi_ok).then_some(number)
    }

    /// The first units of the string, as many as fit but two.
    #[inline]
    fn units<'a>(&self, at: usize, room: &'a mut [u16]) -> Option<&'a [u16]> {
        let mut length = 0;
        // Safety: a value of this call, and as much room as is said.
        let status = unsafe {
            sys::napi_get_value_string_utf16(self.env, self.values[at], room.as_mut_ptr(), room.len(), &mut length)
        };
        if status == sys::Status::napi_ok { room.get(..length) } else { None }
    }
}

#[inline(always)]
fn answer<T: Target>(arguments: &Arguments, target: impl Fn(&Arguments) -> Option<T>) -> Option<u32> {
    let (limit, flags, target) = (arguments.number(0)?, arguments.number(1)?, target(arguments)?);
    if flags & NO_KEY != 0 {
        return Some(with_key(target, limit, flags, None));
    }
    let mut room = [0; SHORT + 2];
    let units = arguments.units(2, &mut room)?;
    if units.len() > SHORT {
        return long(target, arguments, limit, flags);
    }
    let mut bytes = [0; SHORT];
    let mut seen = 0;
    for (byte, unit) in bytes.iter_mut().zip(units) {
        seen |= unit;
        *byte = *unit as u8;
    }
    if seen < 128 {
        Some(with_key(target, limit, flags, bytes.get(..units.len())))
    } else {
        long(target, arguments, limit, flags)
    }
}

/// The same for a key that is long, or not ASCII.
#[cold]
fn long<T: Target>(target: T, arguments: &Arguments, limit: u32, flags: u32) -> Option<u32> {
    let mut room = [0; MAX_KEY_BYTES + 2];
    let units = arguments.units(2, &mut room)?;
    let status = KeyBytes::of(units).map(|key| with_key(target, limit, flags, Some(key.as_slice())));
    Some(status.unwrap_or(KEY_TOO_LONG))
}

#[inline]
fn with_key<T: Target>(target: T, limit: u32, flags: u32, key: Option<&[u8]>) -> u32 {
    let decided = with_numbers(|numbers| {
        let call = match call(numbers[0], numbers[1], flags, numbers[2]) {
            Ok(call) => call,
            Err(status) => return status,
        };
        match with_limit(limit, |limit| target.decide(limit, key, call)) {
            Some(Ok(decision)) => tell(&decision, numbers),
            Some(Err(status)) => status,
            None => BROKEN,
        }
    });
    decided.unwrap_or(BROKEN)
}
