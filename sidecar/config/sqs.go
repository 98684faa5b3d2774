package config

import (
	"strings"

	"github.com/seed1158cd35/weir/internal/doc"
)

// AWSDeliveries are a table of DynamoDB and a queue of SQS.
type AWSDeliveries struct {
	Table    string
	Queue    string // its URL, with the server that it is asked at; "" for none
	Region   string // "" for what the SDK finds
	Endpoint string // of DynamoDB; "" for that of the region
}

var awsDeliveriesFields = []field[AWSDeliveries]{
	one("table", word, func(a *AWSDeliveries) *string { return &a.Table }, "required", "The name of the table of DynamoDB that keeps deliveries; not that of `store`."),
	one("queue", word, func(a *AWSDeliveries) *string { return &a.Queue }, "none", "The URL of a standard queue of SQS, by which weirs hear of what is due. Without one they look every few seconds."),
	one("region", word, func(a *AWSDeliveries) *string { return &a.Region }, "as the AWS SDK finds it", "The region of both."),
	one("endpoint", word, func(a *AWSDeliveries) *string { return &a.Endpoint }, "that of the region", "Another address of DynamoDB, for emulators."),
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

// InFleet reports whether the deliveries are those of a fleet, in what weir store init makes.
func (d *Deliveries) InFleet() bool { return d != nil && (d.Postgres != nil || d.AWS != nil) }
