package main

import (
	"context"
	"flag"

	"github.com/seed1158cd35/weir/sidecar/config"
	sideexport "github.com/seed1158cd35/weir/sidecar/export"
)

// gatewayFile declares the flags of weir export apigateway, and returns what writes the template.
func gatewayFile(f *flag.FlagSet) func(context.Context, world) ([]byte, error) {
	var o sideexport.GatewayOptions
	path := f.String("config", "weir.yaml", "the `file` whose limits are written")
	f.StringVar(&o.Upstream, "upstream", "", "the `name` of the upstream; needed if there are several")
	f.BoolVar(&o.WebSocket, "websocket", false, "a WebSocket API instead of a REST API: operations are routes")
	f.Float64Var(&o.AccountRate, "account-rate", 10000, "requests a second that AWS allows all APIs of the account")
	f.Int64Var(&o.AccountBurst, "account-burst", 5000, "the burst that goes with it")
	return func(_ context.Context, w world) ([]byte, error) {
		return writtenFile(w, *path, func(file *config.File) (sideexport.File, error) { return sideexport.APIGateway(file, o) })
	}
}
