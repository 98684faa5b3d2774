// Package chat is the example of a shop's assistant: its files, for programs that show
// it at work.
package chat

import "embed"

// Files holds weir.yaml, answers.yaml and prices.yaml.
//
//go:embed weir.yaml answers.yaml prices.yaml
var Files embed.FS
