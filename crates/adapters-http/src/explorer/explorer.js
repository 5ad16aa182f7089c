'use strict';

SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#explorer',
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  // Neither the document nor the API key leaves this origin.
  validatorUrl: null,
  persistAuthorization: false,
});
