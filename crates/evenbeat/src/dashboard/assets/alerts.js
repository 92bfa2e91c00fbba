/* Incidents, mutes, routes and deliveries. */
