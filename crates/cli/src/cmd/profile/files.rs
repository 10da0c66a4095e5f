//! The files of a profile: CSV, JSON, and the pictures.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use farhaul::probe::{Point, Profile};
use farhaul_lab::expression::Unit;
use farhaul_lab::report::svg::{Caption, Quantity, RangeCurve, RangeCurves, Surface, range_curves, surface};
use serde_json::Value;

use crate::cmd::drawing::Format;
use crate::exit::{Code, Fault};

/// Makes the directory, if it is not there.
pub(super) fn prepare(directory: &Path) -> Result<(), Fault> {
    fs::create_dir_all(directory).map_err(|error| not_written(directory, &error))
}

/// Writes all files of a profile.
pub(super) fn write(directory: &Path, formats: &[Format], profile: &Profile, record: &Value) -> Result<(), Fault> {
    put(directory, "profile.csv", &csv(profile))?;
    put(directory, "profile.json", &format!("{record:#}\n"))?;
    for (name, drawing) in drawings(profile) {
        draw(directory, name, formats, &drawing)?;
    }
    Ok(())
}

/// Writes a picture in all formats.
pub(super) fn draw(directory: &Path, name: &str, formats: &[Format], svg: &str) -> Result<(), Fault> {
    let written = formats.iter().try_for_each(|format| format.write(&directory.join(name), svg));
    written.map_err(|(path, error)| not_written(&path, &error))
}

/// Writes one file.
pub(super) fn put(directory: &Path, name: &str, content: &str) -> Result<(), Fault> {
    let file = directory.join(name);
    fs::write(&file, content).map_err(|error| not_written(&file, &error))
}

fn not_written(path: &Path, error: &io::Error) -> Fault {
    let code = if error.kind() == ErrorKind::StorageFull { Code::DiskFull } else { Code::LocalIo };
    // The converter's own failures are no fault of the directory.
    let elsewhere = if error.kind() == ErrorKind::Other { "" } else { "; choose another directory by --out" };
    Fault::new(code, format!("cannot write {}: {error}{elsewhere}", path.display()))
}

/// One line for each run.
fn csv(profile: &Profile) -> String {
    let mut text =
        "window_datagrams,sleep_us,repeat,rate_bps,goodput_bps,loss_ratio,jitter_us,sent,arrived,late\n".to_owned();
    for point in &profile.points {
        for (run, repeat) in point.runs.iter().zip(1..) {
            let _ = writeln!(
                text,
                "{},{},{repeat},{},{},{},{},{},{},{}",
                point.window,
                point.sleep.as_micros(),
                run.rate.bits_per_second(),
                run.goodput.bits_per_second(),
                run.loss,
                run.jitter.as_micros(),
                run.sent,
                run.arrived,
                run.late,
            );
        }
    }
    text
}

/// The pictures by their names.
fn drawings(profile: &Profile) -> [(&'static str, String); 4] {
    let bits = Unit::BitsPerSecond;
    [
        ("rate", heat(profile, "rate", ("Sending rate", bits), |point| point.rate().mean)),
        ("goodput", heat(profile, "goodput", ("Goodput", bits), |point| point.goodput().mean)),
        ("loss", heat(profile, "loss", ("Lost datagrams", Unit::Share), |point| point.loss().mean)),
        ("goodput-over-rate", over_rate(profile)),
    ]
}

/// Windows and sleeps of a full grid: those that every point of it has. Points near the capacity stand beside the grid.
fn axes(profile: &Profile) -> (Vec<u32>, Vec<Duration>) {
    let mut windows: Vec<u32> = profile.points.iter().map(|point| point.window).collect();
    windows.sort_unstable();
    windows.dedup();
    let is_full = |sleep: &Duration| {
        let mut here = windows
            .iter()
            .map(|window| profile.points.iter().any(|point| (point.window, point.sleep) == (*window, *sleep)));
        here.all(|is_there| is_there)
    };
    let mut sleeps: Vec<Duration> = profile.points.iter().map(|point| point.sleep).collect();
    sleeps.sort_unstable();
    sleeps.dedup();
    let grid: Vec<Duration> = sleeps.iter().copied().filter(is_full).collect();
    // A sweep that was stopped early may have no full column.
    (windows, if grid.is_empty() { sleeps } else { grid })
}

fn heat(profile: &Profile, id: &str, (name, unit): (&str, Unit), value: impl Fn(&Point) -> f64) -> String {
    let (windows, mut sleeps) = axes(profile);
    // The rate grows to the right and upwards.
    sleeps.reverse();
    let cells = profile.points.iter().filter_map(|point| {
        let column = sleeps.iter().position(|sleep| *sleep == point.sleep)?;
        let row = windows.iter().position(|window| *window == point.window)?;
        Some((column, row, value(point)))
    });
    let title = format!("{name} over burst and sleep");
    surface(&Surface {
        caption: Caption { id, title: &title, shows: "Mean over the repeats for each pair of W_c and T_s" },
        value: Quantity { name, unit },
        across: (
            "T_s, time from burst to burst",
            sleeps.iter().map(|sleep| format!("{}us", sleep.as_micros())).collect(),
        ),
        up: ("datagrams per burst", windows.iter().map(ToString::to_string).collect()),
        cells: cells.collect(),
    })
}

fn over_rate(profile: &Profile) -> String {
    let (windows, _) = axes(profile);
    let curves = windows.iter().map(|window| {
        let of_window = profile.points.iter().filter(|point| point.window == *window);
        let place = |point: &Point| {
            let goodput = point.goodput();
            (point.rate().mean, [goodput.mean, goodput.low, goodput.high])
        };
        let mut points: Vec<_> = of_window.map(place).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        RangeCurve { name: format!("W_c = {window}"), points }
    });
    let advice = profile.advice();
    let best = |advice: farhaul::probe::Advice| {
        ((advice.rate.bits_per_second() as f64, advice.goodput.bits_per_second() as f64), "best")
    };
    range_curves(&RangeCurves {
        caption: Caption {
            id: "goodput-over-rate",
            title: "Goodput over the sending rate",
            shows: "Mean and range over the repeats, one curve for each W_c",
        },
        across: Quantity { name: "Sending rate", unit: Unit::BitsPerSecond },
        up: Quantity { name: "Goodput", unit: Unit::BitsPerSecond },
        curves: curves.collect(),
        equal: "everything arrives",
        marked: advice.map(best),
    })
}

#[cfg(test)]
mod tests {
    use farhaul::probe::BlasterFigures;
    use farhaul_units::Rate;

    use super::*;

    fn profile() -> Profile {
        let mut profile = Profile::default();
        for repeat in 0..2 {
            for (window, sleep) in [(1, 800), (1, 400), (2, 800), (2, 400), (1, 333)] {
                let rate = u64::from(window) * 12_000_000 / sleep;
                let mut figures = BlasterFigures::default();
                figures.rate = Rate::from_bits_per_second(rate * 1_000);
                figures.goodput = Rate::from_bits_per_second(rate * 990 + repeat);
                figures.loss = 0.01;
                profile.add(window, Duration::from_micros(sleep), figures);
            }
        }
        profile
    }

    #[test]
    fn points_beside_the_grid_are_in_the_curve_and_not_in_the_surface() {
        let (windows, sleeps) = axes(&profile());
        assert_eq!((windows, sleeps.len()), (vec![1, 2], 2));
        let [_, (_, goodput), _, (_, curve)] = drawings(&profile());
        assert_eq!(goodput.matches("class=\"cell").count(), 4);
        assert_eq!(curve.matches("class=\"dot").count(), 5);
    }

    #[test]
    fn the_csv_has_a_line_for_each_run() {
        let csv = csv(&profile());
        assert_eq!(csv.lines().count(), 11);
        assert!(csv.lines().nth(1).unwrap().starts_with("1,800,1,15000000,14850000,0.01,"), "{csv}");
    }
}
