// Package deploy holds a test of what is applied to Kubernetes, against its own types.
package deploy
