package gate_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/gate"
)

func updatePhone(_ context.Context, g events.Grant) (any, error) {
	return "updated " + g.Arguments["customer_id"].RevealString(), nil
}

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	g, err := gate.Connect(ctx, "nats://127.0.0.1:4222", gate.WithAgent("crm-bot"))
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	out, err := g.Do(ctx, events.Candidate{
		Task: "t-42", Step: "update-record", Tool: events.Tool{Name: "crm.update_record"},
		Arguments: events.Arguments{"name": events.SecretOf("Juan"), "phone": events.SecretOf("+34 600 000 000")},
		Evidence:  events.Evidence{Missing: []events.Missing{{Field: "customer_id", Question: "Which Juan?"}}},
	}, updatePhone) // runs at most once, and only when it was released
	fmt.Println(out.Ran, err) // true <nil>, or a typed error: NOT EXECUTED: a question waits; nobody has answered yet, …
}

// What an agent does about the ways not to be released differs; none of them is a success or a person's refusal by accident.
func ExampleGate_Do_errors() {
	ctx := context.Background()
	g, err := gate.Connect(ctx, "nats://127.0.0.1:4222", gate.WithAgent("crm-bot"))
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	_, err = g.Do(ctx, events.Candidate{
		Task: "t-42", Step: "update-record", Tool: events.Tool{Name: "crm.update_record"},
		Arguments: events.Arguments{"customer_id": events.SecretOf("c-207")},
	}, updatePhone)

	if waiting, ok := errors.AsType[*gate.Waiting](err); ok {
		_, err = g.Wait(ctx, waiting.Ticket) // the question is still open: come back for the answer, also after a restart
	}
	if lookUp, ok := errors.AsType[*gate.LookUp](err); ok {
		fmt.Println("find", lookUp.Fields, "with", lookUp.Tool, "and propose again")
	}
	if denied, ok := errors.AsType[*gate.Denied](err); ok {
		fmt.Println(denied.By, "said no:", denied.Note)
	}
	if _, ok := errors.AsType[*gate.InDoubt](err); ok {
		fmt.Println("the tool may have run: never run it again by yourself")
	}
}
