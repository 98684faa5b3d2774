package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/seed1158cd35/weir/sidecar/config"
	sideexport "github.com/seed1158cd35/weir/sidecar/export"
)

// gatewayFile returns the maker of a template for API Gateway.
func gatewayFile(f *pflag.FlagSet) fileMaker {
	var o sideexport.GatewayOptions
	path := f.String("config", "weir.yaml", "`FILE` with the limits to write")
	f.StringVar(&o.Upstream, "upstream", "", "`UPSTREAM` whose limits to write; needed if there are several")
	f.BoolVar(&o.WebSocket, "websocket", false, "write for a WebSocket API, whose routes are operations, instead of a REST API; the default for an upstream with route_by")
	f.Float64Var(&o.AccountRate, "account-rate", 10000, "`REQUESTS` per second that AWS allows to all APIs of the account")
	f.Int64Var(&o.AccountBurst, "account-burst", 5000, "`REQUESTS` that AWS allows to all APIs of the account in a burst")
	return func(_ context.Context, w world) ([]byte, error) {
		return writtenFile(w, *path, func(file *config.File) (sideexport.File, error) { return sideexport.APIGateway(file, o) })
	}
}
