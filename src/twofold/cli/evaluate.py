"""``twofold evaluate``."""

from twofold.cli.parser import Parser, print_json
from twofold.cli.show import plain, show_evaluation

EXAMPLES = "twofold evaluate runs/simclr-digits-1\ntwofold evaluate runs/simclr-digits-1 --checkpoint best --json"


def run(words: list[str]) -> int:
    """Measure a run on held-out data."""
    parser = Parser("evaluate", "Measure a run on held-out data; the numbers go into its folder too.", EXAMPLES)
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument("--checkpoint", choices=("last", "best"), default="last", help="whose weights (default: last)")
    chosen = parser.parse_args(words)
    from twofold.training import load
    from twofold.training.display import usual_observer

    finished = load(chosen.run, chosen.checkpoint)
    observer = usual_observer()
    try:
        evaluation = finished.evaluate(observer)
    finally:
        observer.close()
    if chosen.json:
        print_json({"folder": chosen.run, "evaluation": plain(evaluation)})
    else:
        show_evaluation(finished.settings.method, evaluation)
    return 0
