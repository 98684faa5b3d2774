package config

import (
	"strings"

	"github.com/seed1158cd35/weir/internal/doc"
)

// AWSDeliveries is a DynamoDB table and an SQS queue.
type AWSDeliveries struct {
	Table    string
	Queue    string // URL with the server that receives the requests; "" means none
	Region   string // "" means the SDK's default
	Endpoint string // of DynamoDB; "" means the endpoint of the region
}

var awsDeliveriesFields = []field[AWSDeliveries]{
	one("table", tableName, func(a *AWSDeliveries) *string { return &a.Table }, "required", "DynamoDB table, different from that of `store`."),
	one("queue", word, func(a *AWSDeliveries) *string { return &a.Queue }, "none", "URL of a standard SQS queue that announces due deliveries. Without it, weir checks every few seconds."),
	one("region", word, func(a *AWSDeliveries) *string { return &a.Region }, "from the AWS SDK", "Region of the table and the queue."),
	one("endpoint", word, func(a *AWSDeliveries) *string { return &a.Endpoint }, "the region's", ""),
}

func readAWSDeliveries(d *decoder, n *node, v *Deliveries) {
	if isOff(n) {
		return
	}
	var a AWSDeliveries
	if object(d, n, awsDeliveriesFields, &a); n.Kind != doc.Mapping {
		return
	}
	if n.Get("table") == nil {
		d.Bad(n, "write table: weir-deliveries", "has no table")
	}
	for name, of := range map[string]string{"queue": a.Queue, "endpoint": a.Endpoint} {
		if of != "" && !isServer(of) {
			d.Bad(n.Get(name), "write it as https://sqs.eu-central-1.amazonaws.com/123456789012/weir, or http://localhost:8000", "is not the URL of a server")
		}
	}
	if strings.HasSuffix(a.Queue, ".fifo") {
		d.Bad(n.Get("queue"), "name a standard queue: order keys are kept in order by the table", "is a FIFO queue")
	}
	v.AWS = &a
}

// InFleet reports whether a fleet shares the deliveries, in storage that weir store init creates.
func (d *Deliveries) InFleet() bool { return d != nil && (d.Postgres != nil || d.AWS != nil) }
