//! Readers can tell the colours apart, whichever hues they see.

use super::*;

/// Maps of linear red, green and blue for normal sight and for sight without one kind of cone. Source: Machado,
/// Oliveira and Fernandes, "A physiologically-based model for simulation of color vision deficiency" (2009), full
/// severity.
const SIGHTS: [[[f64; 3]; 3]; 4] = [
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [[0.152_286, 1.052_583, -0.204_868], [0.114_503, 0.786_281, 0.099_216], [-0.003_882, -0.048_116, 1.051_998]],
    [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_820, 0.042_940, 0.968_881]],
    [[1.255_528, -0.076_749, -0.178_779], [-0.078_411, 0.930_809, 0.147_602], [0.004_733, 0.691_367, 0.303_900]],
];
/// Least distances in Oklab, in per cent of the distance from black to white. Readers just see a difference of 2.
const APART: f64 = 10.0;
const STEP: f64 = 9.0;
/// The least contrast of a line with its ground. WCAG 2.1 asks for 3.
const CONTRAST: f64 = 2.9;

fn linear(colour: &str) -> [f64; 3] {
    [1, 3, 5].map(|at| {
        let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { libm::pow((value + 0.055) / 1.055, 2.4) }
    })
}

fn times(matrix: [[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row.iter().zip(vector).map(|(factor, value)| factor * value).sum())
}

/// The Oklab coordinates (Ottosson 2020) of a colour as a reader sees it.
fn seen(colour: &str, sight: [[f64; 3]; 3]) -> [f64; 3] {
    let cones = times(
        [
            [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
            [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
            [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
        ],
        times(sight, linear(colour)).map(|value| value.clamp(0.0, 1.0)),
    );
    times(
        [
            [0.210_454_255_3, 0.793_617_785_0, -0.004_072_046_8],
            [1.977_998_495_1, -2.428_592_205_0, 0.450_593_709_9],
            [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766_0],
        ],
        cones.map(libm::cbrt),
    )
}

/// The distance of two colours for the reader who sees least of it.
fn apart(one: &str, other: &str) -> f64 {
    let distance = |sight| {
        let (one, other) = (seen(one, sight), seen(other, sight));
        100.0 * one.iter().zip(other).map(|(one, other)| (one - other) * (one - other)).sum::<f64>().sqrt()
    };
    SIGHTS.into_iter().map(distance).fold(f64::INFINITY, f64::min)
}

fn contrast(one: &str, other: &str) -> f64 {
    let luminance =
        |colour| linear(colour).iter().zip([0.2126, 0.7152, 0.0722]).map(|(value, part)| value * part).sum();
    let (one, other): (f64, f64) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn lines_of_any_two_colours_are_told_apart_whatever_hues_a_reader_sees() {
    for hues in [LIGHT_HUES, DARK_HUES] {
        for (index, one) in hues.iter().enumerate() {
            for other in &hues[index + 1..] {
                assert!(apart(one, other) >= APART, "{one} {other}: {}", apart(one, other));
            }
        }
    }
}

#[test]
fn every_step_of_an_order_is_seen_whatever_hues_a_reader_sees() {
    for steps in [LIGHT_STEPS, DARK_STEPS] {
        for pair in steps.windows(2) {
            assert!(apart(pair[0], pair[1]) >= STEP, "{pair:?}: {}", apart(pair[0], pair[1]));
            assert!(SIGHTS.iter().all(|sight| seen(pair[0], *sight)[0] < seen(pair[1], *sight)[0]), "{pair:?}");
        }
    }
}

#[test]
fn every_line_stands_out_from_its_ground() {
    for (ground, hues, steps) in [("#fffefb", LIGHT_HUES, LIGHT_STEPS), ("#171614", DARK_HUES, DARK_STEPS)] {
        for colour in hues.into_iter().chain(steps) {
            assert!(contrast(colour, ground) >= CONTRAST, "{colour}: {}", contrast(colour, ground));
        }
    }
    assert!(LIGHT.contains("--ground:#fffefb") && DARK.contains("--ground:#171614"));
}
