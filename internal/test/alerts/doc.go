// Package alerts runs Debian's Prometheus and Alertmanager beside a real weir serve: faults are told
// to a webhook, panels show something, and nothing is told of a weir that rests.
package alerts
