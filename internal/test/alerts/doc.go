// Package alerts runs Debian's Prometheus and Alertmanager with a real weir serve. Its tests check that faults reach a webhook,
// that panels show data, and that an idle weir causes no alert.
package alerts
