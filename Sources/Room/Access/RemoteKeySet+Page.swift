import Base
package import Metrics

extension RemoteKeySet.Counts {
    package func add(to page: inout MetricsPage) {
        for (result, value) in [("successful", fetched), ("failed", failed)] {
            page.addCounter(
                "nagare_jwks_fetches_total",
                help: "Fetches of the keys of tokens from the URL of --jwks, by result.",
                labels: [MetricLabel("result", result)],
                value
            )
        }
        page.addGauge("nagare_jwks_keys", help: "Keys of tokens in hand from the URL of --jwks.", keys)
        guard let age else { return }
        page.addGauge(
            "nagare_jwks_age_seconds",
            help: "Time since the keys of tokens were last fetched from the URL of --jwks.",
            age.seconds
        )
    }
}
