package cache

import (
	"errors"
	"testing"
)

func TestOnlyWholeGoodAnswersAreKept(t *testing.T) {
	control := func(v ...string) map[string][]string { return map[string][]string{"Cache-Control": v} }
	for name, c := range map[string]struct {
		Answer
		want error
	}{
		"good":                      {Answer{Status: 200, Complete: true}, nil},
		"throttled":                 {Answer{Status: 429, Complete: true}, errStatus},
		"broken":                    {Answer{Status: 503, Complete: true}, errStatus},
		"created":                   {Answer{Status: 201, Complete: true}, errStatus},
		"no status":                 {Answer{Complete: true}, errStatus},
		"cut":                       {Answer{Status: 200}, errCut},
		"an error in 200":           {Answer{Status: 200, Complete: true, Failed: true}, errError},
		"request no-store":          {Answer{Status: 200, Complete: true, Request: control("max-age=0, No-Store")}, errNoStore},
		"answer no-store":           {Answer{Status: 200, Complete: true, Header: control("private", "no-store")}, errNoStore},
		"answer private, no-cache":  {Answer{Status: 200, Complete: true, Header: control("private, no-cache")}, nil},
		"answer like no-store":      {Answer{Status: 200, Complete: true, Header: control("x-no-store, no-store=1")}, nil},
		"request no-cache is kept":  {Answer{Status: 200, Complete: true, Request: control("no-cache")}, nil},
		"nonsense in cache-control": {Answer{Status: 200, Complete: true, Header: control(",,=,\"", "")}, nil},
	} {
		if got := Storable(c.Answer); !errors.Is(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	for v, want := range map[string]bool{"": true, "no-cache": false, "no-store": false, "max-age=0": false, `max-age="0"`: false, "max-age=10": true, "private": true} {
		if got := Usable(control(v)); got != want {
			t.Errorf("%q: %v, want %v", v, got, want)
		}
	}
}
