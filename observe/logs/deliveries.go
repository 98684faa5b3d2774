package logs

import (
	"log/slog"

	"github.com/seed1158cd35/weir/delivery"
)

const (
	deliveryDied = "deliveries became dead letters"
	deliveryLost = "claim of a delivery lost"
	deliveryFile = "queue of deliveries failed"
)

// Deliveries writes what people have to hear of calls that are made later.
func Deliveries(log *slog.Logger) delivery.Events {
	return delivery.Events{
		Dead: func(upstream string, why delivery.Reason, n int) {
			log.Error(deliveryDied, "upstream", upstream, "reason", string(why), "number", n)
		},
		Lost: func(of *delivery.Delivery) {
			log.Warn(deliveryLost, "upstream", of.Upstream, "delivery", of.ID, "id", of.Correlation)
		},
		Error: func(doing, upstream string, cause error) {
			log.Error(deliveryFile, "doing", doing, "upstream", upstream, "error", cause.Error())
		},
	}
}
