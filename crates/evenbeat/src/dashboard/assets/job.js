/* One job: how fresh it is, why it waits, its history, its next runs, and what can be done to it. */
