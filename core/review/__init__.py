"""Review by people: the order of the queue, adjudication, agreement, names and login."""
