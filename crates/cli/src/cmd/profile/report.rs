//! A profile in words: the table, the shape, the advice.

use std::path::Path;
use std::time::Duration;

use farhaul::probe::{Point, Profile, Shape};
use farhaul_units::Rate;

use super::Sweep;
use crate::output::human::{percent, time};

/// Prints the profile.
pub(super) fn print(sweep: &Sweep<'_>, cached: Option<&Path>) {
    let output = &sweep.port.output;
    let style = output.style();
    table(&sweep.profile).iter().for_each(|line| output.print_line(line));
    output.print_line(&format!("{} {}", style.bold("shape:"), shape(sweep.profile.shape())));
    let Some(advice) = sweep.profile.advice() else {
        output.print_line("nothing arrived: no rate can be recommended");
        return;
    };
    output.print_line(&format!(
        "{} W_c = {}, T_s = {}: {} sent, {} arrive, {} lost",
        style.green("best:"),
        advice.window,
        time(advice.sleep),
        style.bold(&advice.rate.to_string()),
        advice.goodput,
        percent(advice.loss),
    ));
    if let Some(cached) = cached {
        output.print_line(&format!("  stored for {} in {}", sweep.port.peer, cached.display()));
    }
    if let Some(out) = &sweep.args.out {
        output.print_line(&format!("  CSV, JSON and pictures are in {}", out.display()));
    }
}

const fn shape(shape: Shape) -> &'static str {
    match shape {
        Shape::Plateau => {
            "beyond the capacity the goodput stays at its greatest: a dedicated path. A fixed rate is safe here"
        }
        Shape::Fall => {
            "beyond the capacity the goodput falls: a shared path, or a receiver that cannot keep up. Prefer a protocol \
             that adapts"
        }
        Shape::Unsaturated => "too few points send more than the path carries, so this host may be the limit",
    }
}

/// The points by their sending rates, one a line.
fn table(profile: &Profile) -> Vec<String> {
    let mut points: Vec<&Point> = profile.points.iter().collect();
    points.sort_by(|one, other| one.rate().mean.total_cmp(&other.rate().mean));
    let head = format!(
        "{:>5} {:>9} {:>13} {:>13} {:>25} {:>8} {:>8}",
        "W_c", "T_s", "sent", "goodput", "range of goodput", "lost", "jitter"
    );
    std::iter::once(head).chain(points.into_iter().map(line)).collect()
}

fn line(point: &Point) -> String {
    let bits = |value: f64| Rate::from_bits_per_second(value as u64).to_string();
    let goodput = point.goodput();
    format!(
        "{:>5} {:>9} {:>13} {:>13} {:>25} {:>8} {:>8}",
        point.window,
        time(point.sleep),
        bits(point.rate().mean),
        bits(goodput.mean),
        format!("{} … {}", bits(goodput.low), bits(goodput.high)),
        percent(point.loss().mean),
        time(Duration::try_from_secs_f64(point.jitter().mean).unwrap_or_default()),
    )
}

#[cfg(test)]
mod tests {
    use farhaul::probe::BlasterFigures;

    use super::*;

    #[test]
    fn the_table_is_in_order_of_the_rate_and_in_columns() {
        let mut profile = Profile::default();
        for (window, mbit) in [(400, 950), (1, 2), (20, 80)] {
            let rate = Rate::from_megabits_per_second(mbit);
            let mut figures = BlasterFigures::default();
            (figures.rate, figures.goodput, figures.loss) = (rate, rate, 0.012);
            profile.add(window, Duration::from_micros(1_410), figures);
        }
        let table = table(&profile);
        let widths: Vec<usize> = table.iter().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0] && *width <= 100), "{table:#?}");
        assert!(table[1].contains("2.00 Mbit/s") && table[3].contains("950 Mbit/s"), "{table:#?}");
    }
}
