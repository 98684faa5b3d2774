package trace

import (
	"strconv"

	"github.com/seed1158cd35/weir/observe"
)

// methodOf returns the HTTP method for spans. Unknown methods become "_OTHER", so that the number of values is bounded.
func methodOf(m string) string {
	switch m {
	case "", "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY":
		return m
	}
	return "_OTHER"
}

func statusText(status int) string { return strconv.Itoa(status) }

func failureOf(err error) string {
	if err == nil {
		return ""
	}
	return observe.Error(err)
}
