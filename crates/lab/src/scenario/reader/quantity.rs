//! Numbers and their units, as values of keys.

use farhaul_units::{ByteSize, Duration, Rate, parse_duration, parse_ratio};
use serde::Deserialize;

use super::Value;

/// A whole number in `LEAST..=MOST`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct Whole<const LEAST: i64, const MOST: i64>(pub(crate) i64);

/// A number in `LEAST..=MOST`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct Number<const LEAST: i64, const MOST: i64>(pub(crate) f64);

/// A value that is written as a number with a unit.
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident($inner:ty), $parse:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, Deserialize)]
        #[serde(try_from = "Value")]
        pub(crate) struct $name(pub(crate) $inner);

        impl TryFrom<Value> for $name {
            type Error = String;

            fn try_from(value: Value) -> Result<Self, String> {
                let parse: fn(&str) -> Result<$inner, String> = $parse;
                match value {
                    Value::Text(_) | Value::Integer(_) | Value::Float(_) => parse(&value.to_string()).map(Self),
                    other => Err(format!("expected a number with its unit in quotes, found {}", other.kind())),
                }
            }
        }
    };
}

quantity!(/// A share of a whole, in 0..=1.
    Share(f64), |text| parse_ratio(text).map_err(|wrong| wrong.to_string()));
quantity!(/// A time, which may be zero.
    Time(Duration), |text| parse_duration(text).map_err(|wrong| wrong.to_string()));
quantity!(/// A time above zero.
AboveZero(Duration), |text| match parse_duration(text) {
    Ok(Duration::ZERO) => Err("it must be above zero, such as 10ms".to_owned()),
    time => time.map_err(|wrong| wrong.to_string()),
});
quantity!(/// A rate above zero.
LinkRate(Rate), |text| match text.parse() {
    Ok(Rate::ZERO) => Err("a rate of zero lets nothing through: it must be above zero, such as 100mbit".to_owned()),
    rate => rate.map_err(|wrong| wrong.to_string()),
});
quantity!(/// A number of bytes above zero.
Size(u64), |text| match text.parse::<ByteSize>() {
    Ok(ByteSize(0)) => Err("it must be above zero, such as 1MB".to_owned()),
    size => size.map(|ByteSize(bytes)| bytes).map_err(|wrong| wrong.to_string()),
});

impl<const LEAST: i64, const MOST: i64> TryFrom<Value> for Whole<LEAST, MOST> {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::Integer(number) if (LEAST..=MOST).contains(&number) => Ok(Self(number)),
            Value::Integer(number) => Err(format!("{number} is out of range: allowed is {LEAST} to {MOST}")),
            other => Err(format!("expected a whole number, found {}", other.kind())),
        }
    }
}

impl<const LEAST: i64, const MOST: i64> TryFrom<Value> for Number<LEAST, MOST> {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let number = value.number()?;
        let is_allowed = (LEAST as f64..=MOST as f64).contains(&number);
        is_allowed
            .then_some(Self(number))
            .ok_or_else(|| format!("{number} is out of range: allowed is {LEAST} to {MOST}"))
    }
}

impl Value {
    /// The number, whole or not.
    pub(crate) fn number(&self) -> Result<f64, String> {
        match self {
            Self::Integer(number) => Ok(*number as f64),
            Self::Float(number) => Ok(*number),
            other => Err(format!("expected a number, found {}", other.kind())),
        }
    }
}
