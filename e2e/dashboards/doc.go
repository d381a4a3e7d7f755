// Package dashboards tests docs/alerts.yaml and docs/grafana-dashboard.json with Prometheus' own
// engine, against what the package metrics shows of informers of a simulated server. Some of the
// informers are well and some are not.
package dashboards
