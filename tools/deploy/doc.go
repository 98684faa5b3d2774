// Package deploy tests the Kubernetes objects against Kubernetes' own types.
package deploy
