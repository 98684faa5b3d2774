package serve

import (
	"sync/atomic"

	"github.com/seed1158cd35/weir/observe/why"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// keptCalls is what is kept of calls, for people who ask why one went as it did.
type keptCalls struct {
	*why.Keeper
	file atomic.Pointer[config.File] // that is in force
}

func newKeptCalls(file *config.File) *keptCalls {
	k := new(keptCalls)
	k.file.Store(file)
	k.Keeper = why.New(why.Options{Where: func(upstream, field string) string { return k.file.Load().Where(upstream, field) }})
	return k
}
