package demo

import (
	"time"

	"github.com/seed1158cd35/weir/internal/play"
)

// The machine can process 300 calls a second, and its tenants send 240.
var stories = [...]play.Story{
	newStory(play.Trouble{Kind: play.Stall, From: 15 * time.Second, To: 20 * time.Second}, "The upstream stalls for 5 s"),
	newStory(play.Trouble{Kind: play.Flood, From: 15 * time.Second, To: 30 * time.Second, Times: 10}, "One of four tenants sends 10 times as many calls, for 15 s"),
}

func newStory(t play.Trouble, title string) play.Story {
	return play.Story{
		Name: t.Kind.String(), Title: title, Length: time.Minute, Troubles: []play.Trouble{t}, Steady: 5 * time.Second,
		Machine: play.Capacity{Does: 300}, Callers: play.Callers{Ask: 240, Scopes: []string{"tenant"}},
	}
}
