package trace

import (
	"strconv"

	"github.com/seed1158cd35/weir/observe"
)

// methodOf is a method of HTTP as spans have it: there are so many, and "_OTHER" is whatever else callers say.
func methodOf(m string) string {
	switch m {
	case "", "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY":
		return m
	}
	return "_OTHER"
}

func statusText(status int) string { return strconv.Itoa(status) }

// failureOf is an error as spans have it.
func failureOf(err error) string {
	if err == nil {
		return ""
	}
	return observe.Error(err)
}
