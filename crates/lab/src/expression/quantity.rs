//! Numbers with units, as scenarios and scores write them, converted to base units.

use farhaul_units::{ByteSize, Rate, parse_duration};

/// Reads `100mbit` as bits per second, `10ms` as seconds, `1MB` as bytes, `5%` as a share, and a bare number as itself.
///
/// Gives `None` for other text. Times take precedence over sizes, and sizes over rates: `1m` is a minute and `1MB` a
/// megabyte.
#[must_use]
pub fn quantity_in_base_units(text: &str) -> Option<f64> {
    let text = text.trim();
    let number = if let Some(percent) = text.strip_suffix('%') {
        percent.trim_end().parse::<f64>().ok()? / 100.0
    } else if let Ok(number) = text.parse::<f64>() {
        number
    } else if let Ok(duration) = parse_duration(text) {
        duration.as_secs_f64()
    } else if let Ok(size) = text.parse::<ByteSize>() {
        size.0 as f64
    } else {
        text.parse::<Rate>().ok()?.bits_per_second() as f64
    };
    number.is_finite().then_some(number)
}
