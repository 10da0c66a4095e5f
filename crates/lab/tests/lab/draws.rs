//! Paths that a figure calls drawn at random are those of its seed.

#[path = "../../examples/draw-paths.rs"]
#[allow(dead_code, reason = "the program prints what the test compares")]
mod draw_paths;

#[test]
fn the_paths_of_e_auto_are_drawn_from_the_seed_that_it_states() {
    let scenario = include_str!("../../../../figures/ornl/e-auto/scenario.toml");
    let stated = scenario.lines().find_map(|line| line.split_once("--example draw-paths -- ")).expect("a seed").1;
    let numbers: Vec<u64> = stated.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
    let drawn = draw_paths::draw(numbers[0], numbers[1]);
    assert_eq!(drawn.len(), 10);
    let listed: Vec<&str> = scenario.lines().map(str::trim).filter(|line| line.starts_with("{ label = ")).collect();
    assert_eq!(listed[..10], drawn, "the axis");
    assert!(listed[10..].iter().all(|line| drawn.iter().any(|path| path == line)), "the quick form");
}
